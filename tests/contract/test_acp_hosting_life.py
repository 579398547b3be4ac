"""A hosted ACP agent that dies, hangs, floods, needs a login or is restarted: nothing is stuck or done twice."""

import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from isthmus.acp.host.agents import claude_agent_acp
from isthmus.acp.host.known_agent import KnownAgent
from isthmus.client import PromptMessage
from isthmus.development_tool import (
    ConfirmationOption,
    ToolCallStatus,
)
from isthmus.engine.port.placement import Placement
from isthmus.events import TaskState
from support.acp_hosting import (
    LIMITS,
    AcpHosting,
    acp_hosting,
    ended,
    prompts,
    received,
    running_agents,
    seen_of,
    text_of,
)
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


async def test_a_question_whose_agent_dies_is_lost_and_the_conversation_goes_on(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("die-asking")
    assert seen.state is TaskState.INPUT_REQUIRED
    (Path(os.environ["HOME"]) / "die").touch()
    await ended(hosting, seen.task_id)
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


async def test_a_question_that_the_agent_withdraws_is_closed_and_the_turn_goes_on(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("withdraw")
    assert seen.state is TaskState.INPUT_REQUIRED
    (Path(os.environ["HOME"]) / "withdraw").touch()
    await ended(hosting, seen.task_id)
    after = await hosting.whole(seen.task_id)
    assert (after.state, after.text) == (TaskState.COMPLETED, "Never mind.")
    call = after.call("w")
    assert call.status is ToolCallStatus.CANCELLED
    assert call.error is not None
    assert call.error.message == "The agent withdrew the question"


async def test_a_question_that_is_open_when_the_turn_ends_is_answered_as_cancelled(hosting: AcpHosting) -> None:
    left = await hosting.prompt("leave")
    await ended(hosting, left.task_id)
    cancelled = {"jsonrpc": "2.0", "id": "left", "result": {"outcome": {"outcome": "cancelled"}}}
    await eventually_async(lambda: cancelled in received(), 10, what="the answer to the question")
    again = await hosting.prompt("more", left.context_id)
    assert again.text == "You said: more"


async def test_a_question_that_nobody_answers_is_refused_in_the_end(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, limits=replace(LIMITS, answer_seconds=0.3)) as hosting:
        seen = await hosting.prompt("shell")
        assert seen.state is TaskState.INPUT_REQUIRED
        await ended(hosting, seen.task_id)
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
    await text_of(turn, "Working.")
    assert (await hosting.agent.cancel(turn.snapshot.task_id)).state is TaskState.CANCELED
    again = await hosting.prompt("hello", seen.context_id)
    assert again.text == "You said: hello"
    assert [item.get("method") for item in received()].count("initialize") == 1


async def test_an_agent_that_ignores_a_cancellation_is_ended_with_its_children(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, limits=replace(LIMITS, cancel_seconds=0.1, exit_seconds=0.1)) as hosting:
        turn = await hosting.turn("hang")
        said = await text_of(turn, "Hanging")
        child = int(said.split()[-1].rstrip("."))
        assert (await hosting.agent.cancel(turn.snapshot.task_id)).state is TaskState.CANCELED
        await eventually_async(lambda: not psutil.pid_exists(child), what="the end of the agent's child")
        again = await hosting.prompt("hello", turn.snapshot.context_id)
        assert again.text == "You said: hello"


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


async def test_a_known_agent_without_ways_to_log_in_is_advised_about(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, "asks-own-login", agent=claude_agent_acp.AGENT) as hosting:
        seen = await hosting.prompt("hello")
        assert seen.state is TaskState.AUTH_REQUIRED
        assert seen.view.error == (
            "Authentication required. Run `claude` on the machine of the server and log in there (/login)."
            " Then send the message again."
        )


async def test_an_agent_that_cannot_start_or_does_not_answer_fails_the_task(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, command=["/no/such/program"]) as hosting:
        seen = await hosting.prompt("hello")
        assert "'/no/such/program' cannot be started: No such file" in (seen.view.error or "")
    async with acp_hosting(tmp_path, "silent", limits=replace(LIMITS, initialize_seconds=0.2)) as hosting:
        seen = await hosting.prompt("hello")
        assert "initialize: no answer within 0.2 s" in (seen.view.error or "")
        assert seen.state is TaskState.FAILED


async def test_the_agent_gets_no_variables_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ISTHMUS_A2A_TOKEN", "ISTHMUS_JOURNAL", "GEMINI_API_KEY", "SCRIPTED_KEY", "GIVEN"):
        monkeypatch.setenv(name, "x")
    agent = KnownAgent(id="x", title="X", variables=("SCRIPTED_KEY",))
    async with acp_hosting(tmp_path, agent=agent, variables=["GIVEN"]) as hosting:
        names = (await hosting.prompt("environment")).text.split()
    assert {"GIVEN", "HOME", "PATH", "SCRIPTED_KEY"} <= set(names)
    assert not {"ISTHMUS_A2A_TOKEN", "ISTHMUS_JOURNAL", "GEMINI_API_KEY"} & set(names)


async def test_after_a_restart_an_answer_is_too_late_and_the_session_is_loaded(tmp_path: Path) -> None:
    brief = Placement(lease_seconds=1.0)
    async with acp_hosting(tmp_path, placement=brief) as first:
        asked = await first.prompt("shell")
    async with acp_hosting(tmp_path, placement=brief) as second:
        lost = await second.answer(asked, "once")
        call = lost.call("shell-1")
        assert (lost.state, call.status) == (TaskState.FAILED, ToolCallStatus.FAILED)
        assert call.error is not None
        # The first engine's process lives: it is this one.
        assert call.error.message.startswith("Another server took the task over (")
        assert "while this question was open, so no answer reached the agent" in call.error.message
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
