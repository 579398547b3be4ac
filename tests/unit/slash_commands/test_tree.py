import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.client import CommandMessage
from isthmus.development_tool import (
    CommandExecutionStatus,
    ConfirmationRequest,
    ExecuteDetails,
    GenericDetails,
    SlashCommand,
    SlashCommandArgument,
    ToolCall,
    ToolCallStatus,
)
from isthmus.engine.requests.command_execution import refusal, resolve_command, start_status
from isthmus.events import TaskState
from isthmus.slash_commands.tree import (
    CommandLine,
    all_commands,
    completions,
    find,
    near,
    read_line,
    resolve,
    typed_command,
)

TREE = (
    SlashCommand("help", "Help.", (SlashCommandArgument("command", "Which."),)),
    SlashCommand(
        "memory",
        "Memory.",
        sub_commands=(
            SlashCommand("show", "Show."),
            SlashCommand("add", "Add.", (SlashCommandArgument("fact", "What.", is_required=True),)),
            SlashCommand("refresh", "Refresh."),
        ),
    ),
    SlashCommand(
        "git",
        "Namespace.",
        (SlashCommandArgument("subcommand", "one of commit", is_required=True),),
        (SlashCommand("commit", "Commit.", (SlashCommandArgument("args", "Text."),)),),
    ),
    SlashCommand(
        "ask", "Asks.", (SlashCommandArgument("args", "Text."),), (SlashCommand("twice", "Asks twice."),)
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "path", "args", "is_known"),
    [
        ("/memory", ("memory",), "", True),
        ("  /memory   add  two  words ", ("memory", "add"), "two  words", True),
        ("/memory add line\nand line", ("memory", "add"), "line\nand line", True),
        ("/memory:show", ("memory", "show"), "", True),
        ("/memory reload", ("memory", "refresh"), "", True),
        ("/? memory", ("help",), "memory", True),
        ("/git:commit all of it", ("git", "commit"), "all of it", True),
        ("/git commit all of it", ("git", "commit"), "all of it", True),
        ("/ask what is it", ("ask",), "what is it", True),
        ("/ask twice", ("ask", "twice"), "", True),
        ("/memory shwo", ("memory", "shwo"), "", False),
        ("/git push now", ("git", "push"), "now", False),
        ("/git:push now", ("git", "push"), "now", False),
        ("/git:push:all", ("git", "push", "all"), "", False),
        ("/memory:shwo", ("memory", "shwo"), "", False),
        ("/ask:thrice", ("ask", "thrice"), "", False),
    ],
)
def test_a_typed_line_is_the_deepest_command_and_its_arguments(
    line: str, path: tuple[str, ...], args: str, is_known: bool
) -> None:
    found = read_line(line, TREE)
    assert found == CommandLine(path, args, find(path, TREE))
    assert (found is not None and found.command is not None) is is_known


@pytest.mark.parametrize(
    "line", ["", "memory", "/", "/ memory", "/etc/hosts", "/nothing", "say /memory", "//memory", "/no:pe"]
)
def test_what_names_no_command_is_no_command_line(line: str) -> None:
    assert read_line(line, TREE) is None


@pytest.mark.parametrize(
    "path",
    [("memory", "add"), ("/memory", "add"), ("memory add",), ("memory:add",), ("/memory:add",), ("/memory add",)],
)
def test_a_path_is_found_in_every_form(path: tuple[str, ...]) -> None:
    assert resolve(path, TREE) == ("memory", "add")


def test_arguments_that_name_a_subcommand_are_its_path() -> None:
    assert resolve_command(CommandMessage(("memory",), "add I like tea"), TREE) == CommandMessage(
        ("memory", "add"), "I like tea"
    )


@pytest.mark.parametrize(
    ("path", "args", "says"),
    [
        (("memory", "ad"), "", "/memory add"),
        (("mem",), "", "/memory"),
        (("git",), "", "one of commit"),
        (("git:nope",), "", "Did you mean /git commit"),
        (("git", "nope"), "", "Did you mean /git commit"),
        (("/memory:sho",), "", "Did you mean /memory show"),
        (("memory", "add"), " ", "fact"),
        ((), "", "empty"),
        (("x" * 500,), "", "/help"),
    ],
)
def test_what_cannot_be_started_is_said_with_what_was_meant(path: tuple[str, ...], args: str, says: str) -> None:
    problem = refusal(resolve_command(CommandMessage(path, args), TREE), TREE)
    assert problem is not None
    assert says in problem
    assert len(problem) < 300


def test_every_command_can_be_started_by_its_path_with_arguments() -> None:
    for path, command in all_commands(TREE):
        if command.name != "git":
            assert refusal(resolve_command(CommandMessage(path, "x" if command.arguments else ""), TREE), TREE) is None


def test_completions_are_the_lines_that_may_come_next() -> None:
    assert [item.line for item in completions("/", TREE)] == ["/help", "/memory", "/git", "/ask"]
    assert [item.line for item in completions("/me", TREE)] == ["/memory"]
    assert [item.line for item in completions("/memory ", TREE)] == ["/memory show", "/memory add", "/memory refresh"]
    assert [item.line for item in completions("/git:c", TREE)] == ["/git commit"]
    assert completions("/nothing ", TREE) == ()
    assert completions("help", TREE) == ()


@pytest.mark.parametrize("wanted", ["MEMORY", "Memory", "memroy", "MEMROY"])
def test_near_names_are_found_in_whatever_case(wanted: str) -> None:
    assert near((wanted,), TREE)[0] == "/memory"


@given(st.text(alphabet="/memory adshow:git\n ", max_size=30))
def test_no_line_is_too_odd_to_be_read(line: str) -> None:
    found = read_line(line, TREE)
    assert found is None or found.command == find(found.path, TREE)
    completions(line, TREE)
    near(tuple(line.split()), TREE)


def _waiting(request: ConfirmationRequest) -> ToolCall:
    return ToolCall("c", ToolCallStatus.PENDING, "t", {}, confirmation_request=request)


@pytest.mark.parametrize(
    ("state", "pending", "status"),
    [
        (TaskState.WORKING, (), CommandExecutionStatus.STARTED),
        (TaskState.FAILED, (), CommandExecutionStatus.STARTED),
        (
            TaskState.INPUT_REQUIRED,
            (_waiting(ConfirmationRequest((), execute_details=ExecuteDetails("ls"))),),
            CommandExecutionStatus.AWAITING_SHELL_CONFIRMATION,
        ),
        (
            TaskState.INPUT_REQUIRED,
            (_waiting(ConfirmationRequest((), generic_details=GenericDetails("x"))),),
            CommandExecutionStatus.AWAITING_ACTION_CONFIRMATION,
        ),
    ],
)
def test_the_status_says_how_an_execution_began(
    state: TaskState, pending: tuple[ToolCall, ...], status: CommandExecutionStatus
) -> None:
    assert start_status(state, pending) is status


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/memory add a  fact ", ("/memory add ", "a  fact ", "add")),
        ("/memory  add ", ("/memory  add ", "", "add")),
        ("/memory ls", ("/memory ", "ls", "memory")),
        ("/git:commit x", ("/git:commit ", "x", "commit")),
        ("/? mem", ("/? ", "mem", "help")),
        ("/help", None),
        ("/nothing x", None),
        ("help x", None),
        ("/ help x", None),
        ("/", None),
    ],
)
def test_the_deepest_command_whose_name_is_typed_whole_is_found(
    line: str, expected: tuple[str, str, str] | None
) -> None:
    typed = typed_command(line, TREE)
    assert (None if typed is None else (typed.beginning, typed.args, typed.command.name)) == expected


@given(st.text(alphabet="/ :amemoryadd?", max_size=30))
def test_a_typed_command_keeps_the_whole_line(line: str) -> None:
    typed = typed_command(line, TREE)
    assert typed is None or typed.beginning + typed.args == line
