"""An ACP agent of another author behind our A2A server: what clients see, answer and cancel."""

import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from isthmus.acp.host.known_agent import KnownAgent
from isthmus.client import CommandMessage, CommandScope, PromptMessage, Turn
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
from isthmus.events import TaskState, TextContent
from support.acp_hosting import LIMITS, AcpHosting, acp_hosting, prompts, received, running_agents, seen_of
from support.waiting import eventually_async

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
    await _text(await hosting.agent.answer(seen.task_id, [confirmation], answered_by="user"), "Written.")
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


async def test_a_rejected_call_is_cancelled_and_the_turn_goes_on(hosting: AcpHosting) -> None:
    answered = await hosting.answer(await hosting.prompt("edit"), "no")
    assert (answered.state, answered.text) == (TaskState.COMPLETED, "Rejected.")
    assert answered.call("edit-1").status is ToolCallStatus.CANCELLED
    assert content(hosting) == BEFORE


async def test_a_command_is_asked_about_and_its_output_shown(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("shell")
    request = seen.question.confirmation_request
    assert request is not None
    assert request.details == ExecuteDetails("echo hi")
    assert (seen.question.tool_name, seen.question.input_parameters) == ("execute", {"command": "echo hi"})
    answered = await hosting.answer(seen, "once")
    assert answered.call("shell-1").output == ToolOutput(text="hi\n")
    assert answered.text == "Ran."


async def test_a_question_whose_agent_dies_is_lost_and_the_conversation_goes_on(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("die-asking")
    assert seen.state is TaskState.INPUT_REQUIRED
    (Path(os.environ["HOME"]) / "die").touch()
    await _ended(hosting, seen.task_id)
    after = await hosting.whole(seen.task_id)
    assert after.state is TaskState.FAILED
    call = after.call("shell-1")
    assert call.status is ToolCallStatus.FAILED
    assert call.error is not None
    assert "process ended while this question was open" in call.error.message
    assert "by signal 9" in (after.view.error or "")
    again = await hosting.prompt("hello", seen.context_id)
    assert again.text == "You said: hello"
    methods = [item.get("method") for item in received()]
    assert methods.count("session/load") == 1
    assert prompts() == ["die-asking", "hello"]


async def _ended(hosting: AcpHosting, task_id: str) -> None:
    async def has_ended() -> bool:
        return (await hosting.agent.get(task_id)).state.is_terminal

    await eventually_async(has_ended, what="the end of the task")


async def test_an_agent_that_dies_at_work_fails_the_task_and_not_the_conversation(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("die")
    assert (seen.state, seen.view.reason) == (TaskState.FAILED, "agent_lost")
    assert seen.call("d").status is ToolCallStatus.FAILED
    again = await hosting.prompt("hello", seen.context_id)
    (idle,) = running_agents()
    psutil.Process(idle).kill()
    await eventually_async(lambda: not psutil.pid_exists(idle), what="the end of the idle agent")
    more = await hosting.prompt("more", seen.context_id)
    assert [again.text, more.text] == ["You said: hello", "You said: more"]
    assert [item.get("method") for item in received()].count("session/load") == 2


async def test_a_task_is_cancelled_while_its_agent_starts(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, "silent") as hosting:
        turn = await hosting.turn("hello")
        await eventually_async(running_agents, what="the agent")
        assert (await hosting.agent.cancel(turn.snapshot.task_id)).state is TaskState.CANCELED
        await eventually_async(lambda: not running_agents(), what="the end of the agent")


async def test_of_two_tasks_of_a_new_conversation_one_is_refused(hosting: AcpHosting) -> None:
    settings = {"workspace_path": str(hosting.workspace)}
    messages = [PromptMessage(f"{number} edit", context_id="both", settings=settings) for number in (1, 2)]
    turns = await asyncio.gather(*(hosting.agent.prompt(message) for message in messages))
    seen = await asyncio.gather(*(seen_of(hosting.agent, turn) for turn in turns))
    assert sorted(item.state for item in seen) == [TaskState.FAILED, TaskState.INPUT_REQUIRED]
    assert {item.view.reason for item in seen} == {None, "agent_busy"}
    asked = next(item for item in seen if item.state is TaskState.INPUT_REQUIRED)
    assert (await hosting.answer(asked, "once")).state is TaskState.COMPLETED


async def test_an_idle_agent_makes_room_for_another_one_and_a_waiting_one_does_not(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, limits=replace(LIMITS, processes=1)) as hosting:
        first = await hosting.prompt("hello")
        second = await hosting.prompt("shell")
        assert second.state is TaskState.INPUT_REQUIRED
        assert len(running_agents()) == 1
        refused = await hosting.prompt("more", first.context_id)
        assert (refused.state, refused.view.reason) == (TaskState.FAILED, "agent_error")
        assert "1 conversations with the agent are at work" in (refused.view.error or "")
        await hosting.answer(second, "once")
        assert (await hosting.prompt("more", first.context_id)).text == "You said: more"


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


async def test_a_question_that_the_agent_withdraws_is_closed_and_the_turn_goes_on(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("withdraw")
    assert seen.state is TaskState.INPUT_REQUIRED
    (Path(os.environ["HOME"]) / "withdraw").touch()
    await _ended(hosting, seen.task_id)
    after = await hosting.whole(seen.task_id)
    assert (after.state, after.text) == (TaskState.COMPLETED, "Never mind.")
    call = after.call("w")
    assert call.status is ToolCallStatus.CANCELLED
    assert call.error is not None
    assert call.error.message == "The agent withdrew the question"


async def test_a_question_that_nobody_answers_is_refused_in_the_end(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, limits=replace(LIMITS, answer_seconds=0.3)) as hosting:
        seen = await hosting.prompt("shell")
        assert seen.state is TaskState.INPUT_REQUIRED
        await _ended(hosting, seen.task_id)
        after = await hosting.whole(seen.task_id)
    call = after.call("shell-1")
    assert (after.state, call.status) == (TaskState.COMPLETED, ToolCallStatus.CANCELLED)
    assert call.error is not None
    assert call.error.message == "Nobody answered within 0.3 s"
    assert received()[-1]["result"]["outcome"] == {"outcome": "selected", "optionId": "no"}


async def test_a_message_instead_of_an_answer_cancels_the_turn_and_is_sent(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("shell")
    after = await hosting.prompt("something else", task_id=seen.task_id)
    assert (after.state, after.text) == (TaskState.COMPLETED, "You said: something else")
    assert after.call("shell-1").status is ToolCallStatus.CANCELLED
    outcomes = [item["result"]["outcome"] for item in received() if "outcome" in item.get("result", {})]
    assert outcomes == [{"outcome": "cancelled"}]
    assert [item.get("method") for item in received()].count("session/cancel") == 1


async def test_another_task_of_a_conversation_is_refused_while_a_question_is_open(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("edit")
    refused = await hosting.prompt("hello", seen.context_id)
    assert (refused.state, refused.view.reason) == (TaskState.FAILED, "agent_busy")
    assert seen.task_id in (refused.view.error or "")
    assert (await hosting.answer(seen, "once")).state is TaskState.COMPLETED


async def test_cancelling_stops_the_agent_and_answers_its_question(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("shell")
    assert (await hosting.agent.cancel(seen.task_id)).state is TaskState.CANCELED
    await eventually_async(lambda: "result" in received()[-1], what="the answer to the question")
    assert received()[-2]["method"] == "session/cancel"  # otherwise Gemini CLI goes on with its turn
    turn = await hosting.turn("wait", seen.context_id)
    await _text(turn, "Working.")
    assert (await hosting.agent.cancel(turn.snapshot.task_id)).state is TaskState.CANCELED
    again = await hosting.prompt("hello", seen.context_id)
    assert again.text == "You said: hello"
    assert [item.get("method") for item in received()].count("initialize") == 1


async def _text(turn: Turn, text: str) -> str:
    """Return the text of a turn once it has a part; the turn is not read further."""
    async with asyncio.timeout(30):
        async for delivery in turn.deliveries:
            if isinstance(delivery.event, TextContent) and text in delivery.event.text:
                return delivery.event.text
    raise AssertionError(text)


async def test_an_agent_that_ignores_a_cancellation_is_ended_with_its_children(hosting: AcpHosting) -> None:
    turn = await hosting.turn("hang")
    said = await _text(turn, "Hanging")
    child = int(said.split()[-1].rstrip("."))
    assert (await hosting.agent.cancel(turn.snapshot.task_id)).state is TaskState.CANCELED
    await eventually_async(lambda: not psutil.pid_exists(child), what="the end of the agent's child")
    again = await hosting.prompt("hello", turn.snapshot.context_id)
    assert again.text == "You said: hello"


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


@pytest.mark.parametrize(
    ("text", "reason", "error"),
    [("refuse", "refusal", "refused"), ("fail", "agent_error", "Internal error: the quota is used up")],
)
async def test_the_reason_of_a_bad_end_is_stated(hosting: AcpHosting, text: str, reason: str, error: str) -> None:
    seen = await hosting.prompt(text)
    assert (seen.state, seen.view.reason) == (TaskState.FAILED, reason)
    assert error in (seen.view.error or "")


async def test_wrong_messages_change_nothing_and_files_outside_are_refused(hosting: AcpHosting, tmp_path: Path) -> None:
    (hosting.workspace / "link").symlink_to(tmp_path, target_is_directory=True)
    seen = await hosting.prompt("wrong")
    assert (seen.state, seen.text) == (TaskState.COMPLETED, "Still here.")
    assert not (tmp_path / "x").exists()


async def test_a_flood_is_held_within_the_limits(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, limits=replace(LIMITS, waiting_updates=50, title=100)) as hosting:
        seen = await hosting.prompt("flood")
        assert seen.state is TaskState.COMPLETED
        assert len(seen.text) == 100_000
        assert {len(view.call.description or "") for view in seen.view.calls.values()} == {100}


async def test_lines_that_are_not_messages_are_survived(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, "junk") as hosting:
        assert (await hosting.prompt("hello")).text == "You said: hello"


async def test_an_agent_without_a_login_names_the_ways_to_log_in(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, "asks-login") as hosting:
        seen = await hosting.prompt("hello")
        assert seen.state is TaskState.AUTH_REQUIRED
        assert "Authentication required. The agent's ways to log in: Log in to the site, Use a key." in (
            seen.view.error or ""
        )
        (Path(os.environ["HOME"]) / "logged-in").touch()
        again = await hosting.prompt("hello again", task_id=seen.task_id)
        assert (again.state, again.text) == (TaskState.COMPLETED, "You said: hello again")


async def test_an_agent_that_cannot_start_or_does_not_answer_fails_the_task(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, command=["/no/such/program"]) as hosting:
        seen = await hosting.prompt("hello")
        assert "'/no/such/program' cannot be started: No such file" in (seen.view.error or "")
    async with acp_hosting(tmp_path, "silent", limits=replace(LIMITS, initialize_seconds=0.2)) as hosting:
        seen = await hosting.prompt("hello")
        assert "initialize: no answer within 0.2 s" in (seen.view.error or "")
        assert seen.state is TaskState.FAILED


async def test_the_agent_gets_no_variables_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ISTHMUS_A2A_TOKEN", "GEMINI_API_KEY", "SCRIPTED_KEY", "GIVEN"):
        monkeypatch.setenv(name, "x")
    agent = KnownAgent(id="x", title="X", variables=("SCRIPTED_KEY",))
    async with acp_hosting(tmp_path, agent=agent, variables=["GIVEN"]) as hosting:
        names = (await hosting.prompt("environment")).text.split()
    assert {"GIVEN", "HOME", "PATH", "SCRIPTED_KEY"} <= set(names)
    assert not {"ISTHMUS_A2A_TOKEN", "GEMINI_API_KEY"} & set(names)


async def test_a_plain_client_gets_the_final_text(hosting: AcpHosting) -> None:
    message = {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hello"}]}
    task = await hosting.server.result("message/send", {"message": message}, {})
    assert task["status"]["state"] == "completed"
    assert task["status"]["message"]["parts"][0]["text"] == "You said: hello"


async def test_after_a_restart_an_answer_is_too_late_and_the_session_is_loaded(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path) as first:
        asked = await first.prompt("shell")
    async with acp_hosting(tmp_path) as second:
        lost = await second.answer(asked, "once")
        call = lost.call("shell-1")
        assert (lost.state, call.status) == (TaskState.FAILED, ToolCallStatus.FAILED)
        assert call.error is not None
        assert "process ended while this question was open" in call.error.message
        again = await second.prompt("hello", asked.context_id)
        assert again.text == "You said: hello"
    methods = [item.get("method") for item in received()]
    assert methods.count("session/new") == 1
    assert methods.count("session/load") == 1


async def test_a_past_that_is_sent_after_the_answer_is_not_shown_again(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path) as first:
        seen = await first.prompt("hello")
    async with acp_hosting(tmp_path, "replays-late") as second:
        assert (await second.prompt("more", seen.context_id)).text == "You said: more"


async def test_a_session_that_cannot_be_loaded_is_begun_again_and_the_user_told(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path) as first:
        seen = await first.prompt("hello")
    async with acp_hosting(tmp_path, "forgets") as second:
        again = await second.prompt("more", seen.context_id)
    assert "could not continue its earlier session (No previous sessions)" in again.text
    assert again.text.endswith("You said: more")


async def test_an_idle_agent_is_ended_and_its_session_loaded_for_the_next_prompt(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, limits=replace(LIMITS, idle_seconds=0.05)) as hosting:
        seen = await hosting.prompt("hello")
        await eventually_async(lambda: not running_agents(), what="the end of the idle agent")
        assert (await hosting.prompt("more", seen.context_id)).text == "You said: more"
