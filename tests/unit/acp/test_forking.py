"""``session/fork``: a copy of a conversation under an id of its own. Engine and journal are real."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.acp.front.server import FrontOptions
from isthmus.agent.session.session import Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.forking import with_other_ids
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.internal_events import ModelReply
from isthmus.journal.port.base import Journal, JournalError
from isthmus.media import Media
from isthmus.models.port.base import Message, Text, text_of
from isthmus.models.port.message import message_to_json
from isthmus.parts.files.task_files import TaskFiles
from isthmus.programs.acp.place import LocalPlace
from support.acp_front import OPTIONS, FrontClient, RefusedError, front
from support.agents import AskingAgent, EchoAgent, WaitingAgent
from support.engines import engine_on
from support.journals import journal_at
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

FORKING = FrontOptions("1.0", can_delete=True, can_fork=True, timeouts=OPTIONS.timeouts)


def forking(engine: Engine) -> LocalPlace:
    """Return the sessions of an agent in this process."""
    return LocalPlace({}, engine)


async def fork(client: FrontClient, session: str, cwd: Path, **more: Any) -> dict[str, Any]:
    """Return the answer to the request for a copy."""
    return await client.call("session/fork", sessionId=session, cwd=str(cwd), mcpServers=[], **more)


async def test_a_copy_has_the_conversation_and_goes_on_by_itself(workspace: Path) -> None:
    async with engine_on(workspace, EchoAgent()) as engine:
        async with front(engine, options=FORKING, place=forking(engine)) as client:
            greeting = await client.call("initialize", protocolVersion=1)
            assert greeting["agentCapabilities"]["sessionCapabilities"]["fork"] == {}
            session = await client.new(workspace)
            for text in ("one", "two"):
                await client.prompt(session, text)
            answer = await fork(client, session, workspace)
            copy = answer["sessionId"]
            assert copy != session
            assert answer["modes"]["currentModeId"] == "default"
            await client.prompt(copy, "three")
            await client.prompt(session, "four")
        for name, prompts in ((session, "onetwofour"), (copy, "onetwothree")):
            async with front(engine, options=FORKING, place=forking(engine)) as client:
                await client.load(name, workspace)
                assert client.text("user_message_chunk") == prompts
                await client.call("session/delete", sessionId=session)
                listed = (await client.call("session/list"))["sessions"]
                assert (copy, "one") in [(item["sessionId"], item["title"]) for item in listed]


class RememberingAgent:
    """An agent whose model replies with all that it has read so far."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        said = " ".join(text_of(message) for message in turn.session.messages)
        message = message_to_json(Message("assistant", (Text(f"[{said}]"),)))
        await turn.emit(ModelReply(f"m-{turn.session.task_id}", "model", message, input_tokens=10, output_tokens=5))
        return StateChange(TaskState.COMPLETED)


async def session_of(engine: Engine, context_id: str) -> Session:
    """Return a session after all its events."""
    session = Session(context_id)
    for task_id, delivery in await engine.journal.session(context_id):
        session.apply(delivery.event, task_id, delivery.at)
    return session


async def test_the_model_knows_what_was_said_and_files_are_copied(tmp_path: Path, workspace: Path) -> None:
    files = TaskFiles(tmp_path / "data")
    journal = await journal_at(tmp_path / "journal.sqlite")
    engine = Engine(RememberingAgent(), journal, EngineOptions(copy_files=files.copy, delete_files=files.delete))
    await engine.start()
    async with front(engine, options=FORKING, place=forking(engine)) as client:
        session = await client.new(workspace)
        await client.prompt(session, "one")
        (task,) = await engine.tasks()
        picture = files.outputs / task.task_id / "message-1.png"
        picture.parent.mkdir(parents=True)
        picture.write_bytes(b"picture")
        copy = (await fork(client, session, workspace))["sessionId"]
        await client.prompt(copy, "two")
    first, second = await session_of(engine, session), await session_of(engine, copy)
    assert [text_of(message) for message in first.messages] == ["one", "[one]"]
    assert [text_of(message) for message in second.messages] == ["one", "[one]", "two", "[one [one] two]"]
    (copied,) = [one for one in await engine.tasks() if one.title == "one" and one.context_id == copy]
    kept = files.outputs / copied.task_id / "message-1.png"
    assert kept.read_bytes() == b"picture"
    await engine.delete_session(session)
    assert (picture.exists(), kept.read_bytes()) == (False, b"picture")
    await engine.aclose()


def test_paths_of_files_lead_to_those_of_the_copy() -> None:
    prompt = Prompt("m", "Look at it.", media=(Media("image/png", Path("/data/outputs/task-1/a.png")),))
    (copied,) = with_other_ids([prompt], {"task-1": "task-2"})
    assert copied == replace(prompt, media=(Media("image/png", Path("/data/outputs/task-2/a.png")),))


@pytest.mark.parametrize("agent", [AskingAgent, WaitingAgent])
async def test_a_session_that_works_or_waits_is_not_copied(
    agent: type[AskingAgent] | type[WaitingAgent], workspace: Path
) -> None:
    async with (
        engine_on(workspace, agent()) as engine,
        front(engine, options=FORKING, place=forking(engine)) as client,
    ):
        session = await client.new(workspace)
        turn = await client.begin_prompt(session, "x")
        state = TaskState.INPUT_REQUIRED if agent is AskingAgent else TaskState.WORKING

        async def has_begun() -> bool:
            return [task.state for task in await engine.tasks()] == [state]

        await eventually_async(has_begun)
        with pytest.raises(RefusedError, match="wait for its end, answer its question or cancel it"):
            await fork(client, session, workspace)
        assert len(await engine.tasks()) == 1
        await client.notify("session/cancel", sessionId=session)
        await asyncio.wait_for(turn, 10)
        assert (await fork(client, session, workspace))["sessionId"] != session


async def test_a_session_that_was_never_prompted_gives_another_one(workspace: Path) -> None:
    async with (
        engine_on(workspace, EchoAgent()) as engine,
        front(engine, options=FORKING, place=forking(engine)) as client,
    ):
        session = await client.new(workspace)
        copy = (await fork(client, session, workspace))["sessionId"]
        assert copy != session
        assert await client.prompt(copy, "hello") == "end_turn"


async def test_an_unknown_session_another_folder_and_an_agent_without_copies_are_refused(workspace: Path) -> None:
    other = workspace.parent / "other"
    other.mkdir()
    async with engine_on(workspace.parent, EchoAgent()) as engine:
        async with front(engine, options=FORKING, place=forking(engine)) as client:
            session = await client.new(workspace)
            await client.prompt(session, "hello")
            with pytest.raises(RefusedError, match="there is no session 'nothing'"):
                await fork(client, "nothing", workspace)
            with pytest.raises(RefusedError, match=f"the session works in {workspace}; expected this folder"):
                await fork(client, session, other)
        async with front(engine) as client:
            greeting = await client.call("initialize", protocolVersion=1)
            assert "fork" not in greeting["agentCapabilities"]["sessionCapabilities"]
            with pytest.raises(RefusedError, match="there is no method 'session/fork' here") as refused:
                await fork(client, session, workspace)
            assert refused.value.code == -32601


async def test_nothing_is_left_of_a_copy_that_fails(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        engine_on(workspace, EchoAgent()) as engine,
        front(engine, options=FORKING, place=forking(engine)) as client,
    ):
        session = await client.new(workspace)
        for text in ("one", "two"):
            await client.prompt(session, text)
        journal: Journal = engine.journal
        create, made = journal.create, list[str]()

        def failing(task: Any, *rest: Any) -> Any:
            made.append(task.task_id)
            if len(made) == 2:
                raise JournalError("the disk is full")
            return create(task, *rest)

        monkeypatch.setattr(journal, "create", failing)
        with pytest.raises(RefusedError, match="the disk is full"):
            await fork(client, session, workspace)
        assert len(made) == 2
        assert {task.context_id for task in await engine.tasks()} == {session}
