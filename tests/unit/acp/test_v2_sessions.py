"""Sessions in front of a client of the draft of version 2. Engine and journal are real.

Each message of the front is checked against the draft's schema by the client.
"""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from isthmus.acp.front.place import AskClient, FrontPlace
from isthmus.agent.session.turn import AgentTurn
from isthmus.client import AgentClient
from isthmus.development_tool import FileDiff
from isthmus.events import StateChange, TaskState
from isthmus.programs.acp.place import LocalPlace
from support import acp_front
from support.acp_front import ALLOW, BOTH_VERSIONS, CANCELLED, FrontClient, RefusedError
from support.agents import AskingAgent, EchoAgent, WaitingAgent
from support.engines import engine_on
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class FailingAgent:
    """An agent that fails in the middle of its work."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        return StateChange(TaskState.FAILED, "no model", "model")


class AskingPlace(LocalPlace):
    """A place whose question before the first prompt is never answered."""

    async def before_prompt(self, cwd: str, session_id: str, ask: AskClient) -> None:
        await asyncio.Event().wait()


def front(
    agent: AgentClient, version: int = 2, place: FrontPlace | None = None
) -> AbstractAsyncContextManager[FrontClient]:
    """Serve an agent to a client of a version, by a front that speaks both."""
    return acp_front.front(agent, options=BOTH_VERSIONS, version=version, place=place)


def states(client: FrontClient) -> list[str]:
    """Return the states of the work that the client was told, with the reason for each end."""
    return [
        f"{update['state']} {update['stopReason']}" if "stopReason" in update else update["state"]
        for update in client.of_kind("state_update")
    ]


async def prompt(client: FrontClient, session: str, text: str) -> None:
    """Send a prompt and wait for its acceptance."""
    blocks = [{"type": "text", "text": text}]
    accepted = await client.call("session/prompt", sessionId=session, prompt=blocks)
    await eventually_async(lambda: client.of_kind("user_message"))
    assert accepted == {"messageId": client.of_kind("user_message")[-1]["messageId"]}


async def resume(client: FrontClient, session: str, folder: Path, *, whole: bool = True) -> Any:
    """Continue a session, with its past if it is wanted."""
    more = {"replayFrom": {"type": "start"}} if whole else {}
    return await client.call("session/resume", sessionId=session, cwd=str(folder), **more)


async def until(client: FrontClient, *expected: str) -> None:
    await eventually_async(lambda: states(client)[-len(expected) :] == list(expected), 10, what=f"{expected}")


async def test_the_version_is_the_one_that_the_client_asks_for(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine:
        async with front(engine) as client:
            (greeting,) = [message["result"] for message in client.messages]
            assert greeting["protocolVersion"] == 2
        async with front(engine, version=1) as client:
            assert client.messages[0]["result"]["protocolVersion"] == 1
            assert await client.prompt(await client.new(workspace), "hello") == "end_turn"
            for version in (0, 3):
                assert (await client.call("initialize", protocolVersion=version))["protocolVersion"] == 1


async def test_a_connection_keeps_its_version_when_it_is_initialized_again(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        session = await client.new(workspace)
        again = {"protocolVersion": 1, "info": {"name": "editor", "version": "1"}, "capabilities": {}}
        assert (await client.call("initialize", **again))["protocolVersion"] == 2
        await prompt(client, session, "hello")
        await until(client, "idle end_turn")


async def test_a_prompt_is_acknowledged_and_states_tell_the_rest(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        session = await client.new(workspace)
        await prompt(client, session, "hello")
        await until(client, "idle end_turn")
        answer = next(i for i, message in enumerate(client.messages) if "messageId" in message.get("result", {}))
        later = [message["params"]["update"] for message in client.messages[answer + 1 :]]
        user, *rest = [update for update in later if update["sessionUpdate"] != "available_commands_update"]
        assert user == {
            "sessionUpdate": "user_message",
            "messageId": user["messageId"],
            "content": [{"type": "text", "text": "hello"}],
        }
        assert rest == [
            {"sessionUpdate": "session_info_update", "title": "hello"},
            {"sessionUpdate": "state_update", "state": "running"},
            {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "hello "}},
            {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"},
        ]
        await prompt(client, session, "three")  # an idle session takes the next one at once
        await until(client, "idle end_turn", "running", "idle end_turn")


async def test_a_question_pauses_the_turn_until_it_is_answered(workspace: Path) -> None:
    edit = FileDiff("a.txt", str(workspace / "a.txt"), "new\n")
    async with engine_on(workspace, AskingAgent(edit=edit)) as engine, front(engine) as client:
        await prompt(client, await client.new(workspace), "x")
        question = await client.question()
        assert states(client) == ["running", "requires_action"]
        assert question["params"]["subject"]["toolCall"]["content"][0]["changes"] == [
            {"operation": "add", "path": str(workspace / "a.txt"), "fileType": "text"}
        ]
        await client.respond(question, ALLOW)
        await until(client, "running", "requires_action", "running", "idle end_turn")
        calls = client.of_kind("tool_call_update")
        assert [update["status"] for update in calls if "status" in update] == ["pending", "in_progress", "completed"]
        assert len({update["toolCallId"] for update in calls}) == 1


async def test_an_unknown_outcome_is_not_an_approval(workspace: Path) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        session = await client.new(workspace)
        await prompt(client, session, "x")
        await client.respond(await client.question(), {"outcome": {"outcome": "_shrugged"}})
        await until(client, "idle error")
        assert "the client did not ask the user" in client.of_kind("state_update")[-1]["error"]["message"]
        assert agent.ran == []


async def test_a_turn_at_work_is_cancelled(workspace: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        session = await client.new(workspace)
        await prompt(client, session, "work")
        await agent.started.wait()
        with pytest.raises(RefusedError, match="a prompt is running in this session"):
            await prompt(client, session, "more")
        await client.notify("session/cancel", sessionId=session)
        await until(client, "running", "idle cancelled")
        assert agent.stopped.is_set()


async def test_a_prompt_whose_request_is_cancelled_at_once_never_begins(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine, place=AskingPlace({})) as client:
        session = await client.new(workspace)
        blocks = [{"type": "text", "text": "work"}]
        number, result = await client.begin("session/prompt", sessionId=session, prompt=blocks)
        await client.notify("$/cancel_request", requestId=number)
        with pytest.raises(RefusedError) as caught:
            await asyncio.wait_for(result, 10)
        assert caught.value.code == -32800
        await until(client, "idle cancelled")
        assert await engine.tasks() == []


@pytest.mark.parametrize("answers", [True, False])
async def test_a_turn_that_asks_is_cancelled_with_its_question(answers: bool, workspace: Path) -> None:
    async with engine_on(workspace, AskingAgent()) as engine, front(engine) as client:
        session = await client.new(workspace)
        await prompt(client, session, "x")
        question = await client.question()
        await client.notify("session/cancel", sessionId=session)
        if answers:
            await client.respond(question, CANCELLED)
        await until(client, "idle cancelled")


async def test_a_turn_that_fails_says_why_and_the_session_is_idle(workspace: Path) -> None:
    async with engine_on(workspace, FailingAgent()) as engine, front(engine) as client:
        await prompt(client, await client.new(workspace), "x")
        await until(client, "running", "idle error")
        assert client.of_kind("state_update")[-1]["error"] == {"code": -32603, "message": "no model"}
        assert client.text() == ""


async def test_a_prompt_that_cannot_be_taken_is_an_error_and_not_a_state(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        session = await client.new(workspace)
        with pytest.raises(RefusedError, match="expected at least one block with content"):
            await client.call("session/prompt", sessionId=session, prompt=[])
        assert states(client) == []


async def test_another_client_sees_the_turn_and_its_end(workspace: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as first:
        session = await first.new(workspace)
        await prompt(first, session, "work")
        await agent.started.wait()
        async with front(engine) as second, front(engine) as third:
            await resume(second, session, workspace)
            await resume(third, session, workspace, whole=False)
            assert (states(second)[0], states(third)[0]) == ("running", "running")
            assert (second.text("user_message_chunk"), third.text("user_message_chunk")) == ("work", "")
            agent.release.set()
            for client in (first, second, third):
                await until(client, "running", "idle end_turn")


async def test_a_question_is_put_to_each_client_and_the_first_answer_counts(workspace: Path) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as first:
        session = await first.new(workspace)
        await prompt(first, session, "x")
        asked = await first.question()
        async with front(engine) as second, front(engine, version=1) as old:
            await resume(second, session, workspace)
            assert states(second)[0] == "requires_action"
            await old.load(session, workspace)
            assert (await second.question())["params"]["subject"]["type"] == "command"
            assert "toolCall" in (await old.question())["params"]
            await second.respond(await second.question(), ALLOW)
            await until(first, "requires_action", "running", "idle end_turn")
            await until(second, "requires_action", "running", "idle end_turn")
            assert first.withdrawn == [asked["id"]]
            assert old.of_kind("state_update") == []
        assert len(agent.ran) == 1


async def test_a_session_is_resumed_with_its_past_or_without(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine:
        async with front(engine) as client:
            session = await client.new(workspace)
            for text in ("one", "two"):
                await prompt(client, session, text)
                await until(client, "idle end_turn")
        async with front(engine) as client:
            result = await resume(client, session, workspace)
            assert result["configOptions"][0]["configId"] == "mode"
            shown = [update["content"]["text"] for update in client.updates if "messageId" in update]
            assert shown == ["one", "one ", "two", "two "]
            assert states(client) == ["idle"]
        async with front(engine) as client:
            await resume(client, session, workspace, whole=False)
            assert states(client) == ["idle"]
            await prompt(client, session, "three")
            await until(client, "idle end_turn")
            assert client.text() == "three "


async def test_sessions_are_listed_closed_and_not_deleted(workspace: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        session = await client.new(workspace)
        await prompt(client, session, "work")
        await agent.started.wait()
        listed = await client.call("session/list")
        assert [(item["sessionId"], item["title"]) for item in listed["sessions"]] == [(session, "work")]
        assert await client.call("session/close", sessionId=session) == {}
        await until(client, "idle cancelled")
        for method, code in (("session/prompt", -32002), ("session/delete", -32601), ("session/load", -32601)):
            with pytest.raises(RefusedError) as caught:
                await client.call(method, sessionId=session, cwd=str(workspace), prompt=[])
            assert caught.value.code == code


async def test_options_are_set_and_there_are_no_modes(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        session = await client.new(workspace)
        about = {"sessionId": session, "configId": "mode", "type": "id", "value": "plan"}
        result = await client.call("session/set_config_option", **about)
        assert [(item["configId"], item["currentValue"]) for item in result["configOptions"]] == [("mode", "plan")]
        with pytest.raises(RefusedError) as caught:
            await client.call("session/set_mode", sessionId=session, modeId="plan")
        assert caught.value.code == -32601
        with pytest.raises(RefusedError, match="this agent has no login to forget"):
            await client.call("auth/logout")  # this agent has no auth methods
