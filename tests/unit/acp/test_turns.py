"""Turns in front of clients: cancellation, failures, and turns that a client finds at work when it loads a session."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.events import StateChange, TaskState, TextContent
from isthmus.models.port.base import Text
from support.acp_front import FrontClient, RefusedError, front, running_tasks
from support.agents import WaitingAgent, reply
from support.engines import engine_on
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@dataclass
class CountingAgent:
    """Says numbers, one text each; it waits for ``release`` before the number ``pause``. ``said`` is its progress."""

    count: int = 50
    pause: int | None = None
    release: asyncio.Event = field(default_factory=asyncio.Event)
    said: int = 0

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        for number in range(self.count):
            if number == self.pause:
                await self.release.wait()
            await turn.emit(TextContent("m", f"{number} "))
            self.said = number + 1
        await turn.emit(reply("m", Text(self.text)))
        return StateChange(TaskState.COMPLETED)

    @property
    def text(self) -> str:
        """All that it says."""
        return "".join(f"{number} " for number in range(self.count))


@dataclass
class FailingAgent:
    """Fails with a reason, or crashes."""

    end: StateChange | None

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        if self.end is None:
            raise ZeroDivisionError("a bug")
        return self.end


def texts(client: FrontClient) -> Sequence[str]:
    return [update["content"]["text"] for update in client.of_kind("agent_message_chunk")]


async def test_a_turn_at_work_is_cancelled(workspace: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        session = await client.new(workspace)
        turn = await client.begin_prompt(session, "work")
        await agent.started.wait()
        await client.notify("session/cancel", sessionId=session)
        assert (await asyncio.wait_for(turn, 10))["stopReason"] == "cancelled"
        assert agent.stopped.is_set()
        assert texts(client) == []


@pytest.mark.parametrize("method", ["session/cancel", "$/cancel_request"])
async def test_a_prompt_that_is_cancelled_at_once_does_not_run(method: str, workspace: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        session = await client.new(workspace)
        number, turn = next(client.numbers), asyncio.get_running_loop().create_future()
        client.waiting[number] = ("session/prompt", turn)
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "work"}]}
        cancel = {"sessionId": session} if method == "session/cancel" else {"requestId": number}
        messages = (
            {"id": number, "method": "session/prompt", "params": prompt},
            {"method": method, "params": cancel},
        )
        await client.write(b"".join(json.dumps({"jsonrpc": "2.0", **m}).encode() + b"\n" for m in messages))
        assert (await asyncio.wait_for(turn, 10))["stopReason"] == "cancelled"
        assert all(task.state.is_terminal for task in await engine.tasks())


@pytest.mark.parametrize("params", [{}, {"sessionId": 5}, {"sessionId": "nothing"}])
async def test_a_cancellation_of_nothing_changes_nothing(params: dict[str, object], workspace: Path) -> None:
    agent = CountingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        session = await client.new(workspace)
        await client.notify("session/cancel", **params)
        await client.notify("session/cancel", sessionId=session)
        assert await client.prompt(session, "count") == "end_turn"


@pytest.mark.parametrize(
    ("end", "stop_reason"),
    [
        (StateChange(TaskState.FAILED, "cut off", "output_limit"), "max_tokens"),
        (StateChange(TaskState.FAILED, "refused", "safety"), "refusal"),
        (StateChange(TaskState.FAILED, "too many", "turn_limit"), "max_turn_requests"),
        (StateChange(TaskState.REJECTED, "not me"), "refusal"),
        (StateChange(TaskState.INPUT_REQUIRED), "end_turn"),
    ],
)
async def test_each_end_of_a_turn_has_its_stop_reason(end: StateChange, stop_reason: str, workspace: Path) -> None:
    async with engine_on(workspace, FailingAgent(end)) as engine, front(engine) as client:
        assert await client.prompt(await client.new(workspace), "x") == stop_reason


@pytest.mark.parametrize(
    ("end", "code", "message"),
    [
        (StateChange(TaskState.FAILED, "the model is gone", "model"), -32603, "the model is gone"),
        (StateChange(TaskState.AUTH_REQUIRED, "log in first"), -32000, "log in first"),
        (None, -32603, "."),
    ],
)
async def test_a_turn_that_fails_is_an_error_once_and_a_text_when_loaded(
    end: StateChange | None, code: int, message: str, workspace: Path
) -> None:
    async with engine_on(workspace, FailingAgent(end)) as engine, front(engine) as client:
        session = await client.new(workspace)
        with pytest.raises(RefusedError, match=message) as caught:
            await client.prompt(session, "x")
        assert caught.value.code == code
        assert texts(client) == []
        if end is None or end.state is TaskState.FAILED:
            await client.load(session, workspace)
            assert str(caught.value) in client.text()


async def test_a_turn_at_work_is_shown_from_its_beginning_and_then_live(workspace: Path) -> None:
    agent = CountingAgent(pause=30)
    async with engine_on(workspace, agent) as engine:
        async with front(engine) as client:
            session = await client.new(workspace)
            await client.begin_prompt(session, "count")
            await eventually_async(lambda: agent.said == 30)
        async with front(engine) as client:
            await client.load(session, workspace)
            agent.release.set()
            await eventually_async(lambda: "".join(texts(client)) == agent.text)
            assert client.text("user_message_chunk") == "count"


@pytest.mark.parametrize("after", [0, 1, 40, 150, 299])
async def test_a_load_at_any_moment_of_a_turn_loses_nothing_and_repeats_nothing(after: int, workspace: Path) -> None:
    agent = CountingAgent(300)
    async with engine_on(workspace, agent) as engine, front(engine) as first, front(engine) as second:
        session = await first.new(workspace)
        turn = await first.begin_prompt(session, "count")
        await eventually_async(engine.tasks)
        await eventually_async(lambda: agent.said >= after)
        await second.load(session, workspace)
        assert (await asyncio.wait_for(turn, 20))["stopReason"] == "end_turn"
        for client in (first, second):
            await eventually_async(lambda c=client: "".join(texts(c)) == agent.text)
        await second.call("session/list")
        assert "".join(texts(second)) == agent.text


async def test_a_prompt_waits_for_the_turn_that_was_found_at_work(workspace: Path) -> None:
    agent = CountingAgent(pause=30)
    async with engine_on(workspace, agent) as engine:
        async with front(engine) as client:
            session = await client.new(workspace)
            await client.begin_prompt(session, "count")
            await eventually_async(lambda: agent.said == 30)
        async with front(engine) as client:
            await client.load(session, workspace)
            turn = await client.begin_prompt(session, "again")
            await client.call("session/list")
            assert not turn.done()
            agent.release.set()
            assert (await asyncio.wait_for(turn, 10))["stopReason"] == "end_turn"
            assert client.text() == agent.text * 2


async def test_a_prompt_that_waits_is_cancelled_with_the_turn_that_it_waits_for(workspace: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(workspace, agent) as engine:
        async with front(engine) as client:
            session = await client.new(workspace)
            await client.begin_prompt(session, "work")
            await agent.started.wait()
        async with front(engine) as client:
            await client.load(session, workspace)
            turn = await client.begin_prompt(session, "again")
            await client.notify("session/cancel", sessionId=session)
            assert (await asyncio.wait_for(turn, 10))["stopReason"] == "cancelled"
            assert [task.state for task in await engine.tasks()] == [TaskState.CANCELED]


async def test_a_turn_goes_on_when_its_client_ends(workspace: Path) -> None:
    agent = CountingAgent(pause=30)
    async with engine_on(workspace, agent) as engine:
        async with front(engine) as client:
            session = await client.new(workspace)
            await client.begin_prompt(session, "count")
            await eventually_async(lambda: agent.said == 30)
        agent.release.set()
        (task,) = await engine.tasks()
        await eventually_async(lambda: agent.said == 50)
        async with front(engine) as client:
            await client.load(task.context_id, workspace)
            await eventually_async(lambda: client.text() == agent.text)
            assert session == task.context_id


async def test_a_load_that_is_cancelled_shows_nothing_more(workspace: Path) -> None:
    agent = CountingAgent(pause=1)
    async with engine_on(workspace, agent) as engine, front(engine) as first, front(engine) as second:
        session = await first.new(workspace)
        turn = await first.begin_prompt(session, "count")
        await eventually_async(lambda: agent.said == 1)
        number, result = await second.begin("session/load", sessionId=session, cwd=str(workspace), mcpServers=[])
        await eventually_async(lambda: second.updates)
        await second.notify("$/cancel_request", requestId=number)
        try:
            await asyncio.wait_for(result, 10)
        except RefusedError as error:
            assert error.code == -32800  # noqa: PT017 - it may have been answered before
            await eventually_async(lambda: "ACP events of a turn" not in running_tasks(), 5)
            agent.release.set()
            assert (await asyncio.wait_for(turn, 10))["stopReason"] == "end_turn"
            await second.call("session/list")
            assert second.text() in ("", "0 ")
        else:
            agent.release.set()
            await asyncio.wait_for(turn, 10)


async def test_two_loads_at_the_same_time_leave_one_that_is_live(workspace: Path) -> None:
    agent = CountingAgent(pause=30)
    async with engine_on(workspace, agent) as engine, front(engine) as first, front(engine) as second:
        session = await first.new(workspace)
        await first.begin_prompt(session, "count")
        await eventually_async(lambda: agent.said == 30)
        loads = [
            (await second.begin("session/load", sessionId=session, cwd=str(workspace), mcpServers=[]))[1]
            for _ in range(2)
        ]
        await asyncio.wait_for(asyncio.gather(*loads, return_exceptions=True), 10)
        agent.release.set()
        await eventually_async(lambda: second.text().endswith("49 "))
        await second.call("session/list")
        assert second.text().count("49 ") == 1
