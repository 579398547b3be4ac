import pytest

from isthmus import __version__
from isthmus.client import CommandMessage, CommandScope
from isthmus.development_tool import CommandExecutionStatus
from isthmus.events import TaskState
from isthmus.slash_commands.tree import all_commands, find
from support.command_harness import CommandHarness, OpenHarness
from support.scripted_wire import Call, Reply, Say, WireUsage

pytestmark = pytest.mark.anyio


async def test_the_tree_has_every_command_with_a_description_of_it_and_of_its_arguments(
    open_harness: OpenHarness,
) -> None:
    async with open_harness() as harness:
        tree = await harness.engine.commands(CommandScope())
    assert {command.name for command in tree} >= {
        "help", "about", "model", "tools", "mcp", "memory", "init", "compress", "restore", "stats", "tasks",
    }  # fmt: skip
    for path, command in all_commands(tree):
        assert command.description, path
        assert all(argument.name and argument.description for argument in command.arguments), path
    for path in (("mcp", "list"), ("mcp", "desc"), ("mcp", "schema"), ("mcp", "refresh"), ("mcp", "auth")):
        assert find(path, tree) is not None
    for path in (("memory", "show"), ("memory", "list"), ("memory", "add"), ("memory", "refresh")):
        assert find(path, tree) is not None
    add = find(("memory", "add"), tree)
    assert add is not None
    assert [argument.is_required for argument in add.arguments] == [True]


async def test_help_lists_the_commands_and_describes_one(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        listed = await harness.run("/help")
        assert listed.status is CommandExecutionStatus.STARTED
        assert listed.state is TaskState.COMPLETED
        assert "/memory add FACT" in listed.text
        one = await harness.run("/help memory add")
        assert "What to remember" in one.text
        none = await harness.run("/help memroy")
        assert (none.state, none.end.reason) == (TaskState.FAILED, "unknown_command")
        assert "/memory" in (none.end.error or "")


async def test_about_names_version_model_workspace_and_extension(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        ran = await harness.run("/about")
        assert f"Isthmus {__version__}" in ran.text
        assert "Model: test (gemini)" in ran.text
        assert str(harness.workspace) in ran.text
        assert "development-tool v0" in ran.text
        assert "Approval mode: default" in ran.text
        assert "Approval mode: plan" in (await harness.run("/about", approval_mode="plan")).text


async def test_about_names_the_sandbox_and_only_to_its_user_what_it_opens(open_harness: OpenHarness) -> None:
    async with open_harness(sandbox="bubblewrap 0.8.0; writes in the workspace, ~/private") as harness:
        assert "Sandbox: bubblewrap 0.8.0; writes in the workspace, ~/private\n" in (await harness.run("/about")).text
        assert "Sandbox: bubblewrap 0.8.0\n" in (await harness.of("bob").run("/about")).text


async def test_tools_are_listed_by_name_and_with_descriptions(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        names = await harness.run("/tools")
        described = await harness.run("/tools desc")
    assert "- run_shell_command\n" in names.text + "\n"
    assert "bash -c" not in names.text
    assert "bash -c" in described.text


@pytest.mark.slow
async def test_a_chosen_model_answers_from_the_next_request_on_in_this_session_alone(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        first = await harness.prompt("hello")
        chosen = await harness.run("/model gemini:other", first.context_id)
        assert chosen.state is TaskState.COMPLETED
        assert "other" in chosen.text
        await harness.prompt("again", first.context_id)
        await harness.prompt("elsewhere")
        models = [request.path.rpartition("/")[2].partition(":")[0] for request in harness.wire.model_requests]
        assert models == ["test", "other", "test"]
        assert "other" in (await harness.run("/model", first.context_id)).text


async def test_a_model_that_cannot_be_opened_changes_nothing(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        first = await harness.prompt("hello")
        ran = await harness.run("/model openai:gpt-5", first.context_id)
        assert ran.state is TaskState.FAILED
        assert "OPENAI_API_KEY" in (ran.end.error or "")
        await harness.prompt("again", first.context_id)
        assert harness.wire.model_requests[-1].path.rpartition("/")[2].startswith("test:")


@pytest.mark.slow
async def test_stats_count_tokens_by_model_requests_and_calls_of_the_session(open_harness: OpenHarness) -> None:
    replies = [
        Reply.of(Call("list_directory", {"dir_path": "."}), usage=WireUsage(100, 20, cached=40, thoughts=5)),
        Reply.of(Call("read_file", {"file_path": "none.txt"}), usage=WireUsage(200, 30)),
        Reply.of(Say("done"), usage=WireUsage(300, 40)),
        Reply.of(Say("other"), usage=WireUsage(7, 3)),
        Reply.of(Say("elsewhere"), usage=WireUsage(9_999, 9_999)),
    ]
    async with open_harness(replies) as harness:
        first = await harness.prompt("look")
        await harness.prompt("elsewhere", first.context_id, model="gemini:other")
        await harness.prompt("not this session")
        await harness.run("/about", first.context_id)
        ran = await harness.run("/stats", first.context_id)
    assert "3 tasks" in ran.text
    last = ran.text.partition("Last task ")[2]
    assert "other: 1 request, 7 input tokens" in last
    assert "test: 3 requests, 600 input tokens (40 cached, 7%), 90 output tokens (5 thoughts)" in ran.text
    assert "other: 1 request, 7 input tokens (0 cached, 0%), 3 output tokens (0 thoughts)" in ran.text
    assert "tool calls: 1 succeeded, 1 failed" in ran.text
    assert "9,999" not in ran.text


@pytest.mark.slow
async def test_tasks_lists_those_of_the_session_or_all(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        first = await harness.prompt("the first")
        other = await harness.prompt("the second")
        mine = await harness.run("/tasks", first.context_id)
        assert first.task_id in mine.text
        assert "the first" in mine.text
        assert other.task_id not in mine.text
        everything = await harness.run("/tasks all", first.context_id)
        assert other.task_id in everything.text


async def test_a_command_is_not_part_of_the_conversation(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        first = await harness.prompt("hello")
        await harness.run("/about", first.context_id)
        await harness.prompt("again", first.context_id)
        assert "Isthmus" not in harness.said()
        assert "about" not in harness.said()


@pytest.mark.parametrize(
    ("path", "args", "says"),
    [
        (("memroy",), "", "/memory"),
        (("memory", "shwo"), "", "/memory show"),
        (("nothing-like-it-at-all",), "", "/help"),
        ((), "", "command_path"),
        (("memory", "add"), "  ", "fact"),
    ],
)
async def test_what_cannot_be_started_says_so_and_names_near_matches(
    open_harness: OpenHarness, path: tuple[str, ...], args: str, says: str
) -> None:
    async with open_harness() as harness:
        execution = await harness.engine.execute(CommandMessage(path, args))
        assert execution.status is CommandExecutionStatus.FAILED_TO_START
        assert execution.turn is None
        assert says in (execution.message or "")
        assert await harness.engine.tasks() == []


@pytest.mark.parametrize("path", [("/memory", "show"), ("memory show",), ("memory:show",), ("memory",)])
async def test_a_path_is_found_however_it_is_written(open_harness: OpenHarness, path: tuple[str, ...]) -> None:
    async with open_harness() as harness:
        (harness.workspace / "GEMINI.md").write_text("Say please.")
        assert "Say please." in await _said(harness, path)


async def _said(harness: CommandHarness, path: tuple[str, ...]) -> str:
    execution = await harness.engine.execute(CommandMessage(path))
    assert execution.turn is not None, execution.message
    return "".join([getattr(item.event, "text", "") async for item in execution.turn.deliveries])
