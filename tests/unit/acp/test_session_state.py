"""What no event tells: the mode in force, and how full the context is. Engine and journal are real."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.acp.front.session_options import SessionOptions
from isthmus.acp.v2.wire import FrontWireV2
from isthmus.agent.session.session import Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.client import ContentNotSupported
from isthmus.events import StateChange, TaskState
from isthmus.internal_events import Compacted, ModelReply
from isthmus.models.port.base import Message, Text
from isthmus.models.port.message import message_to_json
from isthmus.session_status import Cost, SessionStatus
from support import acp_schema
from support.acp_front import OPTIONS, FrontClient, front
from support.engines import engine_on
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

WINDOW = 200_000
ELSEWHERE = replace(OPTIONS, options=SessionOptions(is_elsewhere=True))


class CountingAgent:
    """An agent whose model replies once for each word of a prompt, with as many tokens as the word says."""

    mode: str | None = "plan"
    silent = False
    asked = 0

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        for index, word in enumerate(turn.session.prompt.split()):
            message = message_to_json(Message("assistant", (Text(word),)))
            await turn.emit(ModelReply(f"m{index}", "model", message, input_tokens=int(word), output_tokens=5))
        return StateChange(TaskState.COMPLETED)

    async def status(self, session: Session) -> SessionStatus:
        self.asked += 1
        if self.silent:
            raise ContentNotSupported("nothing is told today")
        stated = session.settings.approval_mode if session.settings is not None else ""
        used = session.conversation.measured_tokens if session.conversation.measured_messages else None
        return SessionStatus(stated or self.mode, used, WINDOW)


def usages(client: FrontClient) -> list[dict[str, Any]]:
    return client.of_kind("usage_update")


def mode_of(answer: dict[str, Any]) -> str:
    return answer["modes"]["currentModeId"]


@pytest.mark.parametrize("version", [1, 2])
async def test_the_client_is_told_after_each_reply_how_full_the_context_is(version: int, workspace: Path) -> None:
    options = OPTIONS if version == 1 else replace(OPTIONS, wires=(*OPTIONS.wires, FrontWireV2()))
    async with (
        engine_on(workspace, CountingAgent()) as engine,
        front(engine, options=options, version=version) as client,
    ):
        session = await client.new(workspace)
        assert usages(client) == []  # nothing was counted yet
        await client.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "1000 1500 1500"}])
        if version == 2:
            await client.call("session/list")
            await _until_idle(client)
        assert usages(client) == [
            {"sessionUpdate": "usage_update", "used": 1005, "size": 200000},
            {"sessionUpdate": "usage_update", "used": 1505, "size": 200000},
        ]


async def test_the_answer_to_a_prompt_has_the_tokens_of_its_turn_and_no_cost_is_made_up(workspace: Path) -> None:
    async with engine_on(workspace, CountingAgent()) as engine, front(engine) as client:
        session = await client.new(workspace)
        for words, given in (("1000 1500", 2500), ("7", 7)):
            prompt = [{"type": "text", "text": words}]
            answer = await client.call("session/prompt", sessionId=session, prompt=prompt)
            said = 5 * len(words.split())
            counts = {"totalTokens": given + said, "inputTokens": given, "outputTokens": said}
            assert answer == {"stopReason": "end_turn", "usage": counts}
        assert all("cost" not in usage for usage in usages(client))


class PricedAgent(CountingAgent):
    """A counting agent each of whose replies costs a cent."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        message = message_to_json(Message("assistant", (Text("x"),)))
        for index, word in enumerate(turn.session.prompt.split()):
            reply = ModelReply(f"m{index}", "model", message, input_tokens=int(word), output_tokens=5, cost=10**10)
            await turn.emit(reply)
        return StateChange(TaskState.COMPLETED)

    async def status(self, session: Session) -> SessionStatus:
        requests = sum(used.requests for used in session.statistics.models.values())
        cost = Cost(requests / 100, "USD") if requests else None
        return replace(await super().status(session), cost=cost)


async def test_the_client_is_told_after_each_reply_what_the_session_has_cost(workspace: Path) -> None:
    async with engine_on(workspace, PricedAgent()) as engine, front(engine) as client:
        session = await client.new(workspace)
        await client.prompt(session, "1000 1500")
        await client.prompt(session, "2000")
        costs = [(usage["used"], usage["cost"]) for usage in usages(client)]
    assert costs == [
        (used, {"amount": cost, "currency": "USD"}) for used, cost in ((1005, 0.01), (1505, 0.02), (2005, 0.03))
    ]


class CompactingAgent:
    """An agent that replaces the conversation by a summary in each turn."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        await turn.emit(Compacted(f"Summary of {turn.session.prompt}", 0, 900, 10))
        return StateChange(TaskState.COMPLETED)


@pytest.mark.parametrize(("capabilities", "is_told"), [({"session": {"compaction": {}}}, True), ({}, False)])
async def test_a_client_that_takes_compactions_is_told_of_them_also_when_it_loads(
    capabilities: dict[str, Any], is_told: bool, workspace: Path
) -> None:
    async with engine_on(workspace, CompactingAgent()) as engine:
        async with front(engine, capabilities=capabilities) as client:
            session = await client.new(workspace)
            await client.prompt(session, "one")
            told = client.of_kind("compaction_update")
        assert [update["summary"] for update in told] == [[{"type": "text", "text": "Summary of one"}]] * is_told
        for update in told:
            assert update["status"] == "completed"
            acp_schema.check_update(update)
        async with front(engine, capabilities=capabilities) as client:
            await client.load(session, workspace)
            assert client.of_kind("compaction_update") == told


async def _until_idle(client: FrontClient) -> None:
    await eventually_async(lambda: any(update["state"] == "idle" for update in client.of_kind("state_update")))


async def test_a_session_that_is_loaded_or_resumed_tells_its_mode_and_its_context(workspace: Path) -> None:
    agent = CountingAgent()
    async with engine_on(workspace, agent) as engine:
        async with front(engine, options=ELSEWHERE) as first:
            opened = await first.call("session/new", cwd=str(workspace), mcpServers=[])
            session = opened["sessionId"]
            assert mode_of(opened) == "plan"
            await first.call("session/set_mode", sessionId=session, modeId="auto_edit")
            await first.prompt(session, "1000")
        for method in ("session/load", "session/resume"):
            async with front(engine) as second:
                answer = await second.call(method, sessionId=session, cwd=str(workspace), mcpServers=[])
                assert mode_of(answer) == "auto_edit"
                await second.prompt(session, "2000")
                assert [update["used"] for update in usages(second)][-1] == 2005
                task = (await engine.tasks(1))[0]
                settings = await engine.settings_of(task.task_id)
                assert settings is not None
                assert settings.approval_mode == "auto_edit"


async def test_the_context_of_a_loaded_session_is_told_before_its_next_prompt(workspace: Path) -> None:
    async with engine_on(workspace, CountingAgent()) as engine:
        async with front(engine, options=ELSEWHERE) as first:
            session = await first.new(workspace)
            await first.prompt(session, "1000")
        async with front(engine) as second:
            await second.load(session, workspace)
            await eventually_async(lambda: usages(second))
            assert usages(second) == [{"sessionUpdate": "usage_update", "used": 1005, "size": WINDOW}]


async def test_an_agent_that_does_not_answer_costs_no_session_and_is_asked_again(workspace: Path) -> None:
    agent = CountingAgent()
    agent.silent = True
    async with engine_on(workspace, agent) as engine, front(engine, options=ELSEWHERE) as client:
        opened = await client.call("session/new", cwd=str(workspace), mcpServers=[])
        assert mode_of(opened) == "default"
        agent.silent = False
        assert await client.prompt(opened["sessionId"], "1000") == "end_turn"
        assert [update["currentModeId"] for update in client.of_kind("current_mode_update")] == ["plan"]


async def test_an_agent_that_tells_no_mode_leaves_that_of_the_past_prompts(workspace: Path) -> None:
    agent = CountingAgent()
    agent.mode = None
    async with engine_on(workspace, agent) as engine, front(engine, options=ELSEWHERE) as client:
        opened = await client.call("session/new", cwd=str(workspace), mcpServers=[])
        assert mode_of(opened) == "default"


async def test_a_new_session_in_this_process_finds_its_folders_mode_with_the_first_prompt(workspace: Path) -> None:
    async with engine_on(workspace, CountingAgent()) as engine, front(engine) as client:
        opened = await client.call("session/new", cwd=str(workspace), mcpServers=[])
        assert mode_of(opened) == "default"
        await client.prompt(opened["sessionId"], "1000")
        assert [update["currentModeId"] for update in client.of_kind("current_mode_update")] == ["plan"]
        (task,) = await engine.tasks()
        settings = await engine.settings_of(task.task_id)
        assert settings is not None
        assert not settings.approval_mode  # a new session here states no mode
