"""An ACP agent of another author behind our A2A server: what clients see, answer and cancel."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.acp.host.known_agent import KnownAgent
from isthmus.acp.served.files import WorkspaceFiles
from isthmus.client import CommandMessage, CommandScope
from isthmus.development_tool import (
    AgentThought,
    ConfirmationOption,
    ExecuteDetails,
    FileDiff,
    ModifiedFileDetails,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.events import TaskState
from support.acp_hosting import AcpHosting, acp_hosting, prompts, received, seen_of, text_of

pytestmark = pytest.mark.anyio

BEFORE = "one\ntwo\nthree\n"
OPTIONS = (
    ConfirmationOption("always", "Always allow", kind="allow_always"),
    ConfirmationOption("once", "Allow", kind="allow_once"),
    ConfirmationOption("no", "Reject", kind="reject_once"),
)


@pytest.fixture
async def hosting(tmp_path: Path) -> AsyncGenerator[AcpHosting]:
    async with acp_hosting(tmp_path) as hosting:
        (hosting.workspace / "a.txt").write_text(BEFORE, encoding="utf-8")
        yield hosting


def content(hosting: AcpHosting) -> str:
    return (hosting.workspace / "a.txt").read_text(encoding="utf-8")


async def test_texts_and_thoughts_arrive_and_one_session_serves_the_conversation(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("hello")
    assert (seen.state, seen.text) == (TaskState.COMPLETED, "You said: hello")
    assert seen.view.thoughts == [AgentThought("Think.", "About it.")]
    again = await hosting.prompt("more", seen.context_id)
    assert again.text == "You said: more"
    assert [item["method"] for item in received()] == [
        "initialize",
        "session/new",
        "session/prompt",
        "session/prompt",
    ]


async def test_an_answer_of_another_client_lets_the_agent_write(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("edit")
    assert seen.state is TaskState.INPUT_REQUIRED
    request = seen.question.confirmation_request
    assert request is not None
    assert request.options == OPTIONS
    diff = request.file_edit_details
    assert diff is not None
    assert (diff.file_path, diff.old_content) == (str(hosting.workspace / "a.txt"), BEFORE)
    assert diff.new_content == "one\nTWO\nthree\n"
    assert content(hosting) == BEFORE
    answered = await hosting.answer(seen, "once")
    assert (answered.state, answered.text) == (TaskState.COMPLETED, "Written.")
    assert content(hosting) == "one\nTWO\nthree\n"
    assert answered.call("edit-1").status is ToolCallStatus.SUCCEEDED


async def test_the_text_of_the_user_is_written_and_the_agent_is_told(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("edit")
    answered = await hosting.answer(seen, "once", "one\nMINE\nthree\n")
    assert content(hosting) == "one\nMINE\nthree\n"
    output = answered.call("edit-1").output
    assert output is not None
    assert output.diff is not None
    assert output.diff.new_content == "one\nMINE\nthree\n"
    await hosting.prompt("and now", seen.context_id)
    told = prompts()[-1]
    assert told.startswith("The user changed your proposal for ")
    assert "-TWO\n+MINE\n" in told
    assert told.endswith("\n\nand now")
    await hosting.prompt("again", seen.context_id)
    assert prompts()[-1] == "again"


async def test_the_agent_is_told_of_a_change_also_after_its_turn_was_cancelled(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("edit-then-wait")
    confirmation = ToolCallConfirmation("edit-1", "once", ModifiedFileDetails("one\nMINE\nthree\n"))
    await text_of(await hosting.agent.answer(seen.task_id, [confirmation], answered_by="user"), "Written.")
    await hosting.agent.cancel(seen.task_id)
    assert content(hosting) == "one\nMINE\nthree\n"
    await hosting.prompt("and now", seen.context_id)
    assert "-TWO\n+MINE\n" in prompts()[-1]


async def test_a_file_that_changed_meanwhile_keeps_its_text(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("edit")
    (hosting.workspace / "a.txt").write_text("other\n", encoding="utf-8")
    answered = await hosting.answer(seen, "once", "one\nMINE\nthree\n")
    assert content(hosting) == "other\n"
    call = answered.call("edit-1")
    assert call.status is ToolCallStatus.FAILED
    assert call.error is not None
    assert "changed since the edit was proposed" in call.error.message


async def test_a_reason_that_the_agent_has_lost_is_shown(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("edit-and-lose-errors")
    path = hosting.workspace / "a.txt"
    path.write_text("other\n", encoding="utf-8")
    call = (await hosting.answer(seen, "once", "one\nMINE\nthree\n")).call("edit-1")
    assert call.status is ToolCallStatus.FAILED
    assert call.error is not None
    assert call.error.message == (
        f"Error writing to file: {path} changed since the edit was proposed; nothing was written"
    )


@pytest.mark.parametrize("reads_by_itself", [False, True])
async def test_reading_is_not_offered_to_an_agent_that_is_better_off_alone(
    tmp_path: Path, reads_by_itself: bool
) -> None:
    agent = KnownAgent(id="self", title="Self", reads_by_itself=reads_by_itself)
    async with acp_hosting(tmp_path, agent=agent) as hosting:
        await hosting.prompt("hello")
    offered = received()[0]["params"]["clientCapabilities"]["fs"]
    assert offered == {"readTextFile": not reads_by_itself, "writeTextFile": True}


async def test_a_passage_is_shown_and_edited_as_the_whole_file(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("snippet")
    request = seen.question.confirmation_request
    assert request is not None
    assert isinstance(request.details, FileDiff)
    assert (request.details.old_content, request.details.new_content) == (BEFORE, "one\nTWO\nthree\n")
    await hosting.answer(seen, "once", "one\nMINE\nthree\n")
    assert content(hosting) == "one\nMINE\nthree\n"


async def test_an_agent_that_writes_by_itself_is_refused_and_the_users_text_written(tmp_path: Path) -> None:
    agent = KnownAgent(id="self", title="Self", writes_by_itself=True)
    async with acp_hosting(tmp_path, agent=agent) as hosting:
        (hosting.workspace / "a.txt").write_text(BEFORE, encoding="utf-8")
        seen = await hosting.prompt("snippet")
        answered = await hosting.answer(seen, "once", "one\nMINE\nthree\n")
        assert answered.call("edit-1").status is ToolCallStatus.SUCCEEDED
        assert content(hosting) == "one\nMINE\nthree\n"
        assert received()[-1]["result"]["outcome"] == {"outcome": "selected", "optionId": "no"}
        await hosting.prompt("and now", seen.context_id)
        assert "-TWO\n+MINE\n" in prompts()[-1]


async def test_a_command_is_asked_about_and_its_output_shown(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("shell")
    request = seen.question.confirmation_request
    assert request is not None
    assert request.details == ExecuteDetails("echo hi")
    assert (seen.question.tool_name, seen.question.input_parameters) == ("execute", {"command": "echo hi"})
    answered = await hosting.answer(seen, "once")
    assert answered.call("shell-1").output == ToolOutput(text="hi\n")
    assert answered.text == "Ran."


async def test_two_questions_are_answered_one_after_the_other(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("two")
    assert [question.call.tool_call_id for question in seen.view.questions] == ["first", "second"]
    one = await hosting.agent.answer(seen.task_id, [ToolCallConfirmation("second", "once")], answered_by="one")
    after = await seen_of(hosting.agent, one)
    assert after.state is TaskState.INPUT_REQUIRED
    assert after.call("second").status is ToolCallStatus.SUCCEEDED
    assert [question.call.tool_call_id for question in after.view.questions] == ["first"]
    two = await hosting.agent.answer(seen.task_id, [ToolCallConfirmation("first", "no")], answered_by="two")
    end = await seen_of(hosting.agent, two)
    assert (end.state, end.text) == (TaskState.COMPLETED, "Both answered.")
    assert end.call("first").status is ToolCallStatus.CANCELLED


async def test_commands_of_the_agent_are_a_tree_and_go_as_prompts(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("hello")
    scope = CommandScope(context_id=seen.context_id)
    tree = await hosting.agent.commands(scope)
    assert [(item.name, [sub.name for sub in item.sub_commands]) for item in tree] == [
        ("memory", ["show"]),
        ("git", ["commit"]),
    ]
    for path, args in ((("memory", "show"), "all"), (("git:commit",), "")):
        execution = await hosting.agent.execute(CommandMessage(path, args, scope))
        assert execution.turn is not None, execution
        assert (await seen_of(hosting.agent, execution.turn)).state is TaskState.COMPLETED
    assert prompts()[1:] == ["/memory show all", "/git:commit"]


async def test_commands_are_known_before_the_first_prompt_which_takes_the_same_process(hosting: AcpHosting) -> None:
    scope = CommandScope(settings={"workspace_path": str(hosting.workspace)})
    found = await asyncio.gather(hosting.agent.commands(scope), hosting.agent.commands(scope))
    assert [[item.name for item in tree] for tree in found] == [["memory", "git"]] * 2
    first, second = await asyncio.gather(hosting.prompt("hello"), hosting.prompt("hello"))
    assert (first.text, second.text) == ("You said: hello", "You said: hello")
    methods = [item.get("method") for item in received()]
    assert methods.count("session/new") == 2


@pytest.mark.parametrize(
    ("text", "reason", "error"),
    [("refuse", "refusal", "refused"), ("fail", "agent_error", "Internal error: the quota is used up")],
)
async def test_the_reason_of_a_bad_end_is_stated(hosting: AcpHosting, text: str, reason: str, error: str) -> None:
    seen = await hosting.prompt(text)
    assert (seen.state, seen.view.reason) == (TaskState.FAILED, reason)
    assert error in (seen.view.error or "")


async def test_a_plain_client_gets_the_final_text(hosting: AcpHosting) -> None:
    message = {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hello"}]}
    task = await hosting.server.result("message/send", {"message": message}, {})
    assert task["status"]["state"] == "completed"
    assert [artifact["parts"] for artifact in task["artifacts"]] == [[{"kind": "text", "text": "You said: hello"}]]


async def test_a_rejected_call_is_cancelled_and_the_turn_goes_on(hosting: AcpHosting) -> None:
    answered = await hosting.answer(await hosting.prompt("edit"), "no")
    assert (answered.state, answered.text) == (TaskState.COMPLETED, "Rejected.")
    assert answered.call("edit-1").status is ToolCallStatus.CANCELLED
    assert content(hosting) == BEFORE


@pytest.mark.parametrize(("option", "asked"), [("once", 2), ("always", 1)])
async def test_a_file_with_secrets_is_read_for_the_agent_once_the_user_agrees(
    hosting: AcpHosting, option: str, asked: int
) -> None:
    (hosting.workspace / ".env").write_text("KEY=hunter2\n", encoding="utf-8")
    seen = await hosting.prompt("read-secrets")
    questions = 0
    while seen.state is TaskState.INPUT_REQUIRED:
        questions += 1
        assert questions <= asked
        request = seen.question.confirmation_request
        assert request is not None
        assert str(hosting.workspace / ".env") in str(request.details)
        assert [one.id for one in request.options] == ["always", "once", "no"]
        seen = await hosting.answer(seen, option)
    assert (seen.state, questions) == (TaskState.COMPLETED, asked)
    assert seen.text.endswith("KEY=hunter2\n" if asked == 2 else "KEY=hunter2\nKEY=hunter2\n")
    assert {item.call.status for item in seen.view.calls.values()} == {ToolCallStatus.SUCCEEDED}


async def test_a_file_with_secrets_is_not_read_for_the_agent_if_the_user_rejects_it(hosting: AcpHosting) -> None:
    (hosting.workspace / ".env").write_text("KEY=hunter2\n", encoding="utf-8")
    seen = await hosting.prompt("read-secrets")
    seen = await hosting.answer(seen, "no")
    assert seen.state is TaskState.INPUT_REQUIRED
    seen = await hosting.answer(seen, "no")
    assert seen.state is TaskState.COMPLETED
    assert "hunter2" not in seen.text
    assert "it is a file which may hold secrets, and the user did not allow it" in seen.text


def test_a_file_with_secrets_is_known_by_a_relative_path_and_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=hunter2\n", encoding="utf-8")
    (tmp_path / "notes.txt").symlink_to(".env")
    files = WorkspaceFiles(tmp_path)
    for path in (".env", "notes.txt", str(tmp_path / ".env"), str(tmp_path / "notes.txt")):
        asked = files.asked_read(path)
        assert asked is not None
        assert (asked.covered, asked.reason) == (str(tmp_path.resolve() / ".env"), "may hold secrets"), path
    assert files.asked_read("a.txt") is None


def test_an_ignored_file_is_asked_about_for_its_folder_and_a_made_one_is_not(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n", encoding="utf-8")
    for name in ("a/one.log", "build/one.log", "a/one.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("one\n", encoding="utf-8")
    files = WorkspaceFiles(tmp_path)
    asked = files.asked_read("a/one.log")
    assert asked is not None
    assert (asked.covered, asked.reason) == (str(tmp_path.resolve() / "a"), "git ignores")
    assert [files.asked_read(name) for name in ("a/two.log", "build/one.log", "a/one.txt")] == [None] * 3
