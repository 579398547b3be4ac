import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.agent.approval.grants import (
    CommandGrant,
    Grant,
    PrefixGrant,
    ServerGrant,
    ServerToolGrant,
    ToolGrant,
    grants_from_settings,
    grants_of,
)
from isthmus.agent.approval.policy import (
    Allow,
    ApprovalMode,
    ApprovalRequired,
    Decision,
    Deny,
    Policy,
    decide,
    is_guarded,
)
from isthmus.development_tool import McpDetails
from isthmus.tools.port.base import ToolKind

SHELL = "run_shell_command"


def shell(command: str, *grants: Grant, mode: ApprovalMode = ApprovalMode.DEFAULT, may_ask: bool = True) -> Decision:
    return decide(Policy(mode, frozenset(grants), may_ask), SHELL, ToolKind.EXECUTE, {"command": command})


def options_of(decision: Decision) -> list[str]:
    assert isinstance(decision, ApprovalRequired)
    return [option.id for option in decision.options]


@pytest.mark.parametrize("mode", ApprovalMode)
def test_reading_is_always_free(mode: ApprovalMode) -> None:
    assert decide(Policy(mode, may_ask=False), "read_file", ToolKind.READ, {}) == Allow()


@pytest.mark.parametrize(
    ("mode", "kind", "expected"),
    [
        (ApprovalMode.DEFAULT, ToolKind.EDIT, ApprovalRequired),
        (ApprovalMode.DEFAULT, ToolKind.EXECUTE, ApprovalRequired),
        (ApprovalMode.DEFAULT, ToolKind.OTHER, ApprovalRequired),
        (ApprovalMode.AUTO_EDIT, ToolKind.EDIT, Allow),
        (ApprovalMode.AUTO_EDIT, ToolKind.EXECUTE, ApprovalRequired),
        (ApprovalMode.AUTO_EDIT, ToolKind.OTHER, ApprovalRequired),
        (ApprovalMode.PLAN, ToolKind.EDIT, Deny),
        (ApprovalMode.PLAN, ToolKind.EXECUTE, Deny),
        (ApprovalMode.PLAN, ToolKind.OTHER, Deny),
        (ApprovalMode.YOLO, ToolKind.EDIT, Allow),
        (ApprovalMode.YOLO, ToolKind.EXECUTE, Allow),
        (ApprovalMode.YOLO, ToolKind.OTHER, Allow),
    ],
)
def test_the_mode_decides_by_the_kind_of_the_tool(mode: ApprovalMode, kind: ToolKind, expected: type[Decision]) -> None:
    assert isinstance(decide(Policy(mode), "tool", kind, {"command": "make"}), expected)


@given(kind=st.sampled_from(ToolKind), name=st.text(min_size=1), command=st.text())
def test_nothing_with_an_effect_runs_in_plan_mode_whatever_was_granted(kind: ToolKind, name: str, command: str) -> None:
    grants = frozenset({ToolGrant(name), *grants_of("proceed_always_prefix", name, kind, {"command": command})})
    decision = decide(Policy(ApprovalMode.PLAN, grants), name, kind, {"command": command})
    assert isinstance(decision, Allow if kind is ToolKind.READ else Deny)


def test_an_edit_offers_once_always_for_the_tool_and_reject() -> None:
    assert options_of(decide(Policy(), "replace", ToolKind.EDIT, {})) == [
        "proceed_once",
        "proceed_always_tool",
        "cancel",
    ]


def test_a_command_offers_its_prefix_by_name() -> None:
    decision = shell("git status --short && npm run build")
    assert options_of(decision) == ["proceed_once", "proceed_always_prefix", "cancel"]
    assert isinstance(decision, ApprovalRequired)
    assert decision.options[1].name == "Always allow git status, npm run build …"


@pytest.mark.parametrize("command", ["echo $(rm -rf x", "eval 'rm x'", "echo hi > file", "sudo ls", ""])
def test_a_command_that_is_not_understood_or_writes_files_offers_no_prefix(command: str) -> None:
    assert options_of(shell(command)) == ["proceed_once", "cancel"]


def test_a_granted_prefix_lets_only_commands_run_that_consist_of_granted_parts() -> None:
    git = PrefixGrant(("git", "status"))
    assert shell("git status -sb", git) == Allow()
    assert shell("git status | wc -l", git, PrefixGrant(("wc",))) == Allow()
    for command in (
        "git stash",
        "git status; rm -rf .",
        "git status && curl evil",
        "git status | sh",
        "git status $(rm x)",
        "git status > .bashrc",
        "X=1 git statusx",
    ):
        assert isinstance(shell(command, git), ApprovalRequired), command


def test_the_answer_always_grants_what_its_name_said() -> None:
    arguments = {"command": "git status && ls"}
    granted = grants_of("proceed_always_prefix", SHELL, ToolKind.EXECUTE, arguments, folder="/w")
    assert granted == {PrefixGrant(("git", "status"), "/w"), PrefixGrant(("ls",))}
    granted = grants_of("proceed_always_command", SHELL, ToolKind.EXECUTE, arguments, folder="/w")
    assert granted == {CommandGrant("git status && ls", "/w")}
    for option in ("proceed_always_prefix", "proceed_always_command"):
        assert grants_of(option, SHELL, ToolKind.EXECUTE, arguments) == frozenset()  # of a folder that is not known
        assert grants_of(option, "write_file", ToolKind.EDIT, arguments, folder="/w") == frozenset()
    assert grants_of("proceed_always_tool", "replace", ToolKind.EDIT, {}) == {ToolGrant("replace")}
    assert grants_of("proceed_once", "replace", ToolKind.EDIT, {}) == frozenset()
    assert grants_of("cancel", "replace", ToolKind.EDIT, {}) == frozenset()


def test_an_allow_list_names_tools_and_command_prefixes() -> None:
    grants = grants_from_settings(["write_file", "run_shell_command(git status)"])
    assert grants == {ToolGrant("write_file"), PrefixGrant(("git", "status"))}


def test_an_allow_list_entry_without_words_allows_nothing() -> None:
    assert grants_from_settings(["run_shell_command()", "run_shell_command( )"]) == frozenset()


def test_only_the_shell_has_prefixes_under_either_of_its_names() -> None:
    assert grants_from_settings(["write_file(rm)", "(rm)", "run_shell_command(rm"]) == frozenset()
    assert grants_from_settings(["ShellTool(ls)", "ShellTool"]) == {PrefixGrant(("ls",)), ToolGrant(SHELL)}


def test_files_that_instruct_this_agent_and_its_kept_answers_are_guarded() -> None:
    assert is_guarded(Path("/w/docs/HOUSE.md"), ["House.md"])
    assert not is_guarded(Path("/w/docs/HOUSE.md"))
    assert is_guarded(Path("/w/GEMINI.md"))
    assert is_guarded(Path("/home/me/.local/share/isthmus/mcp-approvals.json"))


@pytest.mark.parametrize("mode", [ApprovalMode.YOLO, ApprovalMode.AUTO_EDIT, ApprovalMode.DEFAULT])
def test_in_a_sandbox_an_edit_that_starts_programs_outside_is_asked_in_every_mode(mode: ApprovalMode) -> None:
    def decided(policy: Policy, *, is_starting: bool = True) -> Decision:
        return decide(policy, "write_file", ToolKind.EDIT, {}, is_guarded=True, is_starting=is_starting)

    confined = Policy(mode, frozenset({ToolGrant("write_file")}), is_confined=True)
    assert options_of(decided(confined)) == ["proceed_once", "cancel"]
    refused = decided(replace(confined, may_ask=False))
    assert isinstance(refused, Deny)
    assert "outside of the sandbox" in refused.reason or mode is not ApprovalMode.YOLO
    if mode is ApprovalMode.YOLO:
        assert decided(confined, is_starting=False) == Allow()
        assert decided(replace(confined, is_confined=False)) == Allow()


def test_an_edit_of_a_guarded_file_is_asked_each_time() -> None:
    granted = Policy(ApprovalMode.AUTO_EDIT, frozenset({ToolGrant("write_file")}))
    asked = decide(granted, "write_file", ToolKind.EDIT, {}, is_guarded=True)
    assert options_of(asked) == ["proceed_once", "cancel"]
    alone = decide(Policy(ApprovalMode.AUTO_EDIT, may_ask=False), "write_file", ToolKind.EDIT, {}, is_guarded=True)
    assert isinstance(alone, Deny)
    assert "yolo" in alone.reason


@pytest.mark.parametrize(
    ("command", "entry"),
    [
        ("git status && git log", "run_shell_command(git log)"),
        ("git log | wc", "run_shell_command(git log),run_shell_command(wc)"),
        ("git status > file", "run_shell_command"),
        ("git $(log)", "run_shell_command"),
    ],
)
def test_the_refusal_of_a_command_names_what_is_missing_and_would_be_enough(command: str, entry: str) -> None:
    policy = Policy(grants=frozenset({PrefixGrant(("git", "status"))}), may_ask=False)
    decision = decide(policy, SHELL, ToolKind.EXECUTE, {"command": command})
    assert isinstance(decision, Deny)
    assert f"--allowed-tools '{entry}'" in decision.reason


def test_without_a_user_the_refusal_names_the_flags_that_would_allow_it() -> None:
    decision = shell("git status", may_ask=False)
    assert isinstance(decision, Deny)
    assert "--approval-mode yolo" in decision.reason
    assert "--allowed-tools 'run_shell_command(git status)'" in decision.reason
    edit = decide(Policy(may_ask=False), "replace", ToolKind.EDIT, {})
    assert isinstance(edit, Deny)
    assert "--approval-mode auto_edit or --allowed-tools 'replace'" in edit.reason


def answered(command: str, option: str, folder: str) -> frozenset[Grant]:
    """Return the grants of an answer to the question about a command in a folder; the option must be offered."""
    asked = decide(Policy(), SHELL, ToolKind.EXECUTE, {"command": command}, folder=folder)
    assert option in options_of(asked), command
    return grants_of(option, SHELL, ToolKind.EXECUTE, {"command": command}, folder=folder)


def runs(command: str, folder: str, grants: frozenset[Grant]) -> bool:
    return decide(Policy(grants=grants), SHELL, ToolKind.EXECUTE, {"command": command}, folder=folder) == Allow()


@pytest.mark.parametrize(
    ("command", "elsewhere"),
    [
        ("./run.sh", "cd sub && ./run.sh"),
        ("npm test", "cd sub && npm test"),
        ("make test", "cd sub; make test"),
        ("make all", "(cd ../other && make all)"),
        ("python manage.py migrate", "cd /tmp && python manage.py"),
        ("git status", "cd sub && git status"),
        ("pytest -x", "cd sub || true; pytest"),
        ("cargo test", "for d in a b; do cd x; cargo test; done"),
        ("uv run pytest", "pushd sub && uv run pytest"),
    ],
)
def test_a_prefix_holds_in_the_folder_in_which_it_was_given(command: str, elsewhere: str) -> None:
    grants = answered(command, "proceed_always_prefix", "/w")
    assert runs(command, "/w", grants)
    assert runs(f"{command} && ls", "/w", grants | answered("ls", "proceed_always_prefix", "/w"))
    for folder in ("/w/sub", "/", "/w2", ""):
        assert not runs(command, folder, grants), folder
    others = frozenset({PrefixGrant(("cd",)), PrefixGrant(("pushd",)), PrefixGrant(("true",))})
    assert not runs(elsewhere, "/w", grants | others)
    everywhere = frozenset(PrefixGrant(grant.prefix) for grant in grants if isinstance(grant, PrefixGrant))
    assert runs(command, "/anywhere", everywhere)  # of the user's own settings


def test_a_prefix_behind_a_change_of_folder_holds_where_it_runs() -> None:
    grants = answered("(cd sub && make all) && cd ./a/../b && make all && cat x", "proceed_always_prefix", "/w")
    assert grants == {
        PrefixGrant(("cd",)),
        PrefixGrant(("cat",)),
        PrefixGrant(("make", "all"), "/w/sub"),
        PrefixGrant(("make", "all"), "/w/b"),
    }
    assert runs("make all", "/w/sub", grants)
    assert runs("cd /w/b && make all", "/elsewhere", grants)
    assert not runs("make all", "/w", grants)


@pytest.mark.parametrize("command", ["cat a", "ls -la", "grep -r x . | wc -l", "cd sub && head -5 a"])
def test_a_program_that_runs_nothing_of_its_folder_is_allowed_in_all_of_them(command: str) -> None:
    grants = answered(command, "proceed_always_prefix", "/w")
    assert runs(command, "/elsewhere", grants)


@pytest.mark.parametrize(
    "command",
    ["cd $HOME && make a", "cd -; make a", "popd; make a", "cd && make a", "while true; do cd x; make a; done"],
)
def test_no_prefix_is_offered_for_a_program_in_a_folder_that_is_not_certain(command: str) -> None:
    asked = decide(Policy(), SHELL, ToolKind.EXECUTE, {"command": command}, folder="/w")
    assert "proceed_always_prefix" not in options_of(asked)


EVERYDAY: tuple[str, ...] = tuple(
    tomllib.loads(Path(__file__).with_name("everyday_commands.toml").read_text(encoding="utf-8"))["lines"]
)


@pytest.mark.parametrize("command", EVERYDAY)
def test_each_line_has_a_lasting_answer_for_exactly_this_line_in_this_folder(command: str) -> None:
    grants = answered(command, "proceed_always_command", "/w")
    assert runs(command, "/w", grants)
    for other in (f"{command} ", f"{command}; true", f" {command}", f"{command}\n", f"ls; {command}", command[:-1]):
        assert not runs(other, "/w", grants), other
    for folder in ("/w/sub", "/", "", "/W"):
        assert not runs(command, folder, grants), folder
    alone = decide(Policy(grants=grants, may_ask=False), SHELL, ToolKind.EXECUTE, {"command": command}, folder="/w")
    assert alone == Allow()
    plan = decide(Policy(ApprovalMode.PLAN, grants), SHELL, ToolKind.EXECUTE, {"command": command}, folder="/w")
    assert isinstance(plan, Deny)


def test_there_are_sixty_everyday_lines_and_no_lasting_answer_for_nothing() -> None:
    assert len(set(EVERYDAY)) >= 60
    for command in ("", " ", "\n"):
        asked = decide(Policy(), SHELL, ToolKind.EXECUTE, {"command": command}, folder="/w")
        assert options_of(asked) == ["proceed_once", "cancel"]


@pytest.mark.parametrize("option", ["proceed_always_tool", "proceed_always_and_save"])
def test_a_grant_for_a_servers_tool_is_for_the_definition_that_was_shown(option: str) -> None:
    """A server that changes what its tool does is asked about again: see the calls of tools with versions."""
    shown = McpDetails("one", "run")
    assert grants_of(option, "one__run", ToolKind.OTHER, {}, shown, "v1") == {ServerToolGrant("one", "run", "v1")}
    assert grants_of("proceed_always_server", "one__run", ToolKind.OTHER, {}, shown, "v1") == {ServerGrant("one")}
    assert grants_of("proceed_once", "one__run", ToolKind.OTHER, {}, shown, "v1") == frozenset()
