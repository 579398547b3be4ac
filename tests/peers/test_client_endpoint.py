"""Editors that a client names in AgentSettings (extension, section 4): an MCP endpoint; real server and companion."""

import asyncio
import json
import sqlite3
import stat
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import InvalidRequest, PromptMessage
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import ConfirmationAccepted, TaskState
from support.gemini_wire import GeminiWire
from support.isolation import isolate
from support.isthmus_program import CompanionProgram, companion_program, isthmus
from support.loaded_program import LoadedProgram
from support.scripted_wire import Call, Replies, Reply, Say
from support.serve_program import ServeProgram, serve_program
from support.turns import events_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def served(
    loaded: LoadedProgram, folder: Path, workspace: Path, replies: Replies, *options: str
) -> AsyncGenerator[tuple[ServeProgram, RemoteAgent, GeminiWire]]:
    """Start a server whose model is a Gemini wire, and yield a client of it."""
    with GeminiWire(replies) as wire:
        environment = {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}
        arguments = ("-m", "gemini:test", *options)
        async with serve_program(folder, workspace, *arguments, environment=environment, loaded=loaded) as program:
            agent = await RemoteAgent.connect(program.url, program.token)
            try:
                yield program, agent, wire
            finally:
                await agent.aclose()


def settings(workspace: Path, companion: CompanionProgram, **more: Any) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {companion.discovered['authToken']}"}
    server = {"name": "my editor", "url": companion.url, "headers": headers}
    return {"workspace_path": str(workspace), "mcp_servers": [server], **more}


def edit(path: Path) -> Call:
    return Call("replace", {"file_path": str(path), "old_string": "one", "new_string": "two"})


async def attached(workspace: Path) -> int:
    """Return the number of agents that are attached to the companion."""
    done = await asyncio.to_thread(partial(isthmus, "ide", "status", "--json", folder=workspace))
    return len(json.loads(done.stdout)["agents"])


@pytest.mark.requirement("A2A-132", "A2A-133", "A2A-134", "A2A-023")
async def test_the_clients_editor_gives_context_and_reviews_the_edit(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    path = workspace / "a.py"
    path.write_text("one\n", encoding="utf-8")
    replies = [Reply.of(edit(path)), Reply.of(Say("done"))]
    with companion_program(workspace, "--open", "a.py:1:2") as companion:
        async with served(loaded_isthmus, tmp_path, workspace, replies, "--allow-client-mcp") as (_, agent, wire):
            turn = await agent.prompt(PromptMessage("edit it", settings=settings(workspace, companion)))
            await events_of(turn)
            told = json.dumps(wire.model_requests[0].json["contents"])
            assert "activeFile" in told
            assert str(path) in told
            assert "openDiff" not in json.dumps(wire.model_requests[0].json["tools"])
            assert await attached(workspace) == 1
            shown = await asyncio.to_thread(partial(isthmus, "ide", "diffs", "--wait", "50", folder=workspace))
            assert "+two" in shown.stdout
            accepted = await asyncio.to_thread(
                partial(isthmus, "ide", "accept", "a.py", "--content", "-", folder=workspace, text="mine\n")
            )
            assert accepted.returncode == 0, accepted.stderr

            async def completed() -> bool:
                return (await agent.get(turn.task_id)).state is TaskState.COMPLETED

            await eventually_async(completed)
            assert path.read_text(encoding="utf-8") == "mine\n"
            kept = await events_of(await agent.follow(turn.task_id, 0))
            (answer,) = [event for event in kept if isinstance(event, ConfirmationAccepted)]
            assert answer.answered_by == "my editor"

            async def left() -> bool:
                return await attached(workspace) == 0

            await eventually_async(left, what="the agent to leave the editor")
            token = companion.discovered["authToken"]
            assert token not in (tmp_path / "serve.log").read_text(encoding="utf-8")
            for file in (tmp_path / "data").glob("journal.sqlite*"):
                assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_an_answer_of_another_client_closes_the_view_in_the_clients_editor(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    path = workspace / "a.py"
    path.write_text("one\n", encoding="utf-8")
    replies = [Reply.of(edit(path)), Reply.of(Say("done"))]
    with companion_program(workspace) as companion:
        async with served(loaded_isthmus, tmp_path, workspace, replies, "--allow-client-mcp") as (_, agent, _wire):
            turn = await agent.prompt(PromptMessage("edit it", settings=settings(workspace, companion)))
            await events_of(turn)
            shown = await asyncio.to_thread(partial(isthmus, "ide", "diffs", "--wait", "50", folder=workspace))
            assert "+two" in shown.stdout
            (call,) = (await agent.get(turn.task_id)).pending
            confirmation = ToolCallConfirmation(call.tool_call_id, "proceed_once")
            await events_of(await agent.answer(turn.task_id, [confirmation], answered_by="test"))

            async def closed() -> bool:
                done = await asyncio.to_thread(partial(isthmus, "ide", "diffs", "--json", folder=workspace))
                return not json.loads(done.stdout)["diffs"]

            await eventually_async(closed)
            assert path.read_text(encoding="utf-8") == "two\n"


async def test_without_the_owners_leave_no_address_of_this_machine_is_taken(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    with companion_program(workspace) as companion:
        async with served(loaded_isthmus, tmp_path, workspace, []) as (_, agent, _wire):
            with pytest.raises(InvalidRequest, match="allow-client-mcp"):
                await agent.prompt(PromptMessage("hi", settings=settings(workspace, companion)))
            assert await attached(workspace) == 0


@pytest.fixture(scope="module")
async def refusing(
    tmp_path_factory: pytest.TempPathFactory, loaded_isthmus: LoadedProgram
) -> AsyncGenerator[tuple[RemoteAgent, Path]]:
    """Yield a client and the folder of a server that gets only requests it refuses."""
    folder = tmp_path_factory.mktemp("refusing").resolve()
    async with AsyncExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            stack.enter_context(isolate(patch))
            _, agent, wire = await stack.enter_async_context(served(loaded_isthmus, folder, folder, []))
        yield agent, folder
        assert not wire.model_requests


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"approval_mode": "everything"}, "approval_mode"),
        ({"allowed_tools": ["write_file("]}, "allowed_tools"),
        ({"allowed_tools": 7}, "allowed_tools"),
        ({"context_files": ["../GEMINI.md"]}, "context_files"),
        ({"mcp_servers": [{"name": "x", "url": "file:///etc/passwd"}]}, "mcp_servers"),
        ({"mcp_servers": [{"name": "x", "url": "http://a/", "headers": {"a b": "c"}}]}, "mcp_servers"),
    ],
)
@pytest.mark.requirement("A2A-023")
async def test_settings_that_do_not_fit_are_refused_by_the_name_of_their_key(
    refusing: tuple[RemoteAgent, Path], more: dict[str, Any], key: str
) -> None:
    agent, folder = refusing
    with pytest.raises(InvalidRequest, match=key):
        await agent.prompt(PromptMessage("hi", settings={"workspace_path": str(folder), **more}))
    assert await agent.tasks() == []


async def test_a_model_that_is_not_known_is_refused_and_those_that_are_named(
    refusing: tuple[RemoteAgent, Path],
) -> None:
    agent, folder = refusing
    named = {"workspace_path": str(folder), "model": "no-such-model"}
    with pytest.raises(InvalidRequest, match="gemini:NAME"):
        await agent.prompt(PromptMessage("hi", settings=named))
    assert await agent.tasks() == []


async def test_the_editors_token_is_in_no_file_that_others_can_read(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    with companion_program(workspace) as companion:
        token = companion.discovered["authToken"].encode()
        async with served(loaded_isthmus, tmp_path, workspace, [Reply.of(Say("hello"))], "--allow-client-mcp") as (
            _,
            agent,
            _wire,
        ):
            await events_of(await agent.prompt(PromptMessage("hi", settings=settings(workspace, companion))))
        holding = [path for path in (tmp_path / "data").rglob("*") if path.is_file() and token in path.read_bytes()]
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in holding)
        assert all(path.name.startswith("journal.sqlite") for path in holding)
        with sqlite3.connect(tmp_path / "data" / "journal.sqlite") as connection:
            assert connection.execute("SELECT count(*) FROM events").fetchone()[0] > 0
        connection.close()
