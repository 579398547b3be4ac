"""``session/delete``: a session's tasks are gone from the journal, whatever they did. Engine and journal are real."""

from pathlib import Path

import pytest

from isthmus.acp.front.server import FrontOptions
from isthmus.client import PromptMessage, TaskQuery
from isthmus.engine import Engine
from isthmus.programs.acp.place import LocalPlace
from support.acp_front import OPTIONS, FrontClient, RefusedError, front
from support.agents import AskingAgent, EchoAgent, WaitingAgent
from support.engines import engine_on

pytestmark = pytest.mark.anyio

DELETING = FrontOptions("1.0", can_delete=True, timeouts=OPTIONS.timeouts)


def deleting(engine: Engine) -> LocalPlace:
    """Return the sessions of an agent in this process."""
    return LocalPlace({}, engine)


async def listed(client: FrontClient) -> list[str]:
    return [session["sessionId"] for session in (await client.call("session/list"))["sessions"]]


async def test_a_deleted_session_is_neither_listed_nor_loaded(workspace: Path) -> None:
    async with (
        engine_on(workspace, EchoAgent()) as engine,
        front(engine, options=DELETING, place=deleting(engine)) as client,
    ):
        greeting = await client.call("initialize", protocolVersion=1)
        assert greeting["agentCapabilities"]["sessionCapabilities"]["delete"] == {}
        session, other = await client.new(workspace), await client.new(workspace)
        for text in ("one", "two"):
            await client.prompt(session, text)
        await client.prompt(other, "three")
        assert await client.call("session/delete", sessionId=session) == {}
        assert await listed(client) == [other]
        for method in ("session/load", "session/resume"):
            with pytest.raises(RefusedError, match=f"there is no session '{session}'") as caught:
                await client.call(method, sessionId=session, cwd=str(workspace), mcpServers=[])
            assert caught.value.code == -32002
        with pytest.raises(RefusedError, match="there is no session"):
            await client.prompt(session, "four")
        assert [task.title for task in await engine.tasks()] == ["three"]


async def test_a_session_that_is_gone_or_never_was_is_deleted_without_an_error(workspace: Path) -> None:
    async with (
        engine_on(workspace, EchoAgent()) as engine,
        front(engine, options=DELETING, place=deleting(engine)) as client,
    ):
        unprompted = await client.new(workspace)
        for session in (unprompted, unprompted, "never", ""):
            assert await client.call("session/delete", sessionId=session) == {}


async def test_a_turn_at_work_is_cancelled_before_its_session_is_deleted(workspace: Path) -> None:
    agent = WaitingAgent()
    async with (
        engine_on(workspace, agent) as engine,
        front(engine, options=DELETING, place=deleting(engine)) as client,
    ):
        session = await client.new(workspace)
        response = await client.begin_prompt(session, "work")
        await agent.started.wait()
        assert await client.call("session/delete", sessionId=session) == {}
        assert (await response)["stopReason"] == "cancelled"
        assert await engine.tasks() == []


async def test_a_question_of_a_session_that_another_client_opened_goes_with_it(workspace: Path) -> None:
    async with (
        engine_on(workspace, AskingAgent()) as engine,
        front(engine, options=DELETING, place=deleting(engine)) as client,
        front(engine, options=DELETING, place=deleting(engine)) as other,
    ):
        session = await client.new(workspace)
        response = await client.begin_prompt(session, "ask")
        question = await client.question()
        assert await other.call("session/delete", sessionId=session) == {}
        assert (await response)["stopReason"] == "cancelled"
        assert client.withdrawn == [question["id"]]
        assert await listed(client) == []
        again = await client.begin_prompt(session, "ask again")  # this client still has the session open
        await client.question(1)
        again.cancel()


async def test_another_users_session_of_the_same_id_stays(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine:
        alice = engine.for_user("alice")
        for user in (engine, alice):
            turn = await user.prompt(PromptMessage("hello", context_id="same"))
            assert [delivery async for delivery in turn.deliveries]
        await engine.delete_session("same")
        assert (await engine.list_tasks(TaskQuery(context_id="same"))).tasks == []
        assert len((await alice.list_tasks(TaskQuery(context_id="same"))).tasks) == 1
