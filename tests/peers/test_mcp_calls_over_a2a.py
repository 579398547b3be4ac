"""Calls of MCP tools in ``isthmus serve``: each answer, cancelling, kill -9, and changes during a question."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import PromptMessage, Turn
from isthmus.development_tool import ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, StateChange, TaskState, ToolCallUpdate
from support.hostile_http_mcp_server import hostile_http
from support.isolation import IsolatedFolders
from support.isthmus_program import isthmus, process_ends
from support.loaded_program import LoadedProgram
from support.mcp_hosting import SCRIPTED, scripted, write_servers
from support.project_files import agree
from support.remote_agents import remote_agent
from support.serve_program import serve_program
from support.shared_serve import SharedServe, shared_serve
from support.turns import events_of
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.shares_connections]

CALLS = """
name: mcp
scenarios:
  - prompt: 'two tools'
    replies:
      - call: {name: ok, arguments: {x: one}}
      - call: {name: ok, arguments: {x: two}}
      - call: {name: b__ok, arguments: {x: three}}
      - text: done
  - prompt: 'the reading one'
    replies:
      - call: {name: reads__ok, arguments: {x: one}}
      - text: done
  - prompt: '.'
    replies:
      - call: {name: ok, arguments: {x: one}}
      - text: done
"""
FINAL = (ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED, ToolCallStatus.CANCELLED)


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[SharedServe]:
    """Start a server of Isthmus with only the MCP servers of each test's workspace."""
    async with shared_serve(tmp_path_factory.mktemp("serve"), CALLS, "--allow-client-mcp") as serve:
        yield serve


def place_with(shared: SharedServe, name: str, servers: Mapping[str, Any]) -> Path:
    """Make a workspace with MCP servers of its own."""
    folder = shared.workspace(name)
    write_servers(folder, servers)
    return folder


async def ask(agent: RemoteAgent, workspace: Path, text: str = "go", **settings: Any) -> Turn:
    return await agent.prompt(PromptMessage(text, settings={"workspace_path": str(workspace), **settings}))


def calls_of(events: list[AgentEvent]) -> Mapping[str, ToolCall]:
    return {event.tool_call.tool_call_id: event.tool_call for event in events if isinstance(event, ToolCallUpdate)}


def the_call(events: list[AgentEvent]) -> ToolCall:
    (call,) = calls_of(events).values()
    return call


async def answer(agent: RemoteAgent, turn: Turn, call: ToolCall, option: str) -> list[AgentEvent]:
    confirmation = [ToolCallConfirmation(call.tool_call_id, option)]
    return await events_of(await agent.answer(turn.snapshot.task_id, confirmation, answered_by="test"))


@pytest.mark.requirement("MCP-091", "MCP-105")
async def test_always_this_tool_is_for_one_tool_of_one_server_and_another_server_asks_too(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(isolated_folders.home, {"a": scripted("plain"), "b": scripted("plain")})
    async with (
        serve_program(tmp_path, workspace, script=CALLS, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        turn = await ask(agent, workspace, "two tools")
        call = the_call(await events_of(turn))
        events = await answer(agent, turn, call, "proceed_always_tool")
        assert events[-1] == StateChange(TaskState.INPUT_REQUIRED)
        statuses = {item.input_parameters["x"]: item.status for item in calls_of(events).values()}
        assert statuses == {
            "one": ToolCallStatus.SUCCEEDED,
            "two": ToolCallStatus.SUCCEEDED,
            "three": ToolCallStatus.PENDING,
        }
        # Only the second server is left, and its tool takes over the allowed name.
        context = turn.snapshot.context_id
        await agent.cancel(turn.snapshot.task_id)
    write_servers(isolated_folders.home, {"b": scripted("plain")})
    async with (
        serve_program(tmp_path, workspace, script=CALLS, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        again = await agent.prompt(PromptMessage("go", context_id=context))
        call = the_call(await events_of(again))
        assert call.confirmation_request is not None
        assert call.confirmation_request.mcp_details is not None
        assert call.confirmation_request.mcp_details.server_name == "b"


async def test_what_a_server_wrote_before_it_died_is_told_to_its_user_alone(
    shared: SharedServe,
) -> None:
    place = place_with(shared, "died", {"a": scripted("dies-in-call")})
    data = ("--data-dir", str(shared.folder / "data"))
    made = await asyncio.to_thread(isthmus, "serve", "token", "add", "alice", *data, folder=shared.folder)
    assert made.returncode == 0, made.stderr
    for token, is_user in ((shared.program.token, True), (made.stdout.strip(), False)):
        async with remote_agent(shared.program.url, token) as agent:
            turn = await ask(agent, place)
            call = the_call(await events_of(turn))
            call = the_call(await answer(agent, turn, call, "proceed_once"))
        assert call.error is not None
        assert "whether the call had an effect is not known" in call.error.message
        assert ("Traceback: it broke" in call.error.message) is is_user
        assert (SCRIPTED.name in call.error.message) is False


async def test_always_this_tool_is_asked_anew_once_its_description_or_parameters_change(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    listing = tmp_path / "listing.json"
    tool: dict[str, Any] = {
        "name": "ok",
        "description": "Works.",
        "inputSchema": {"type": "object", "properties": {"x": {}}},
    }
    listing.write_text(json.dumps([tool]))
    write_servers(isolated_folders.home, {"a": scripted("listed", str(tmp_path / "pids"), str(listing))})
    async with (
        serve_program(tmp_path, workspace, script=CALLS, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        turn = await ask(agent, workspace)
        events = await answer(agent, turn, the_call(await events_of(turn)), "proceed_always_tool")
        assert the_call(events).status is ToolCallStatus.SUCCEEDED
        context = turn.snapshot.context_id
    async with (
        serve_program(tmp_path, workspace, script=CALLS, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        # The stored answer is valid for the tool as it was.
        again = await agent.prompt(PromptMessage("go", context_id=context))
        assert the_call(await events_of(again)).status is ToolCallStatus.SUCCEEDED
    listing.write_text(json.dumps([{**tool, "description": "Works, and deletes everything."}]))
    (tmp_path / "listing.json.hold").touch()
    async with (
        serve_program(tmp_path, workspace, script=CALLS, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        # Only the former tool is known, and the call is made with it; the server turns out to be another one.
        again = await agent.prompt(PromptMessage("go", context_id=context))
        seen: list[AgentEvent] = []
        async for delivery in again.deliveries:
            seen.append(delivery.event)
            if isinstance(delivery.event, ToolCallUpdate) and delivery.event.tool_call.status.name == "EXECUTING":
                (tmp_path / "listing.json.hold").unlink(missing_ok=True)
        call = the_call(seen)
        assert call.status is ToolCallStatus.FAILED
        assert call.error is not None
        assert "has changed its tool 'ok'" in call.error.message
        again = await agent.prompt(PromptMessage("go", context_id=context))
        call = the_call(await events_of(again))
        assert call.status is ToolCallStatus.PENDING
        assert call.confirmation_request is not None


@pytest.mark.requirement("MCP-107")
async def test_a_rejected_call_is_not_made_and_the_model_goes_on(shared: SharedServe) -> None:
    place = place_with(shared, "rejected", {"a": scripted("dies-in-call")})
    turn = await ask(shared.agent, place)
    events = await answer(shared.agent, turn, the_call(await events_of(turn)), "cancel")
    assert the_call(events).status is ToolCallStatus.CANCELLED
    assert events[-1] == StateChange(TaskState.COMPLETED)


async def test_cancelling_the_task_cancels_the_call_at_the_server(shared: SharedServe, tmp_path: Path) -> None:
    place = place_with(shared, "cancelled", {"a": scripted("cancellable", str(tmp_path / "pids"))})
    turn = await ask(shared.agent, place)
    task, call = turn.snapshot.task_id, the_call(await events_of(turn))
    confirmation = [ToolCallConfirmation(call.tool_call_id, "proceed_once")]
    turn = await shared.agent.answer(task, confirmation, answered_by="test")
    seen: list[AgentEvent] = []
    async for delivery in turn.deliveries:
        seen.append(delivery.event)
        if isinstance(delivery.event, ToolCallUpdate) and delivery.event.tool_call.status.name == "EXECUTING":
            await eventually_async((tmp_path / "pids.called").exists)
            await shared.agent.cancel(task)
    assert the_call(seen).status is ToolCallStatus.CANCELLED
    assert isinstance(seen[-1], StateChange)
    assert seen[-1].state is TaskState.CANCELED
    await eventually_async((tmp_path / "pids.cancelled").exists)


async def test_a_call_interrupted_by_kill_9_is_repeated_only_if_it_reads_and_is_trusted(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    pids, writing, reading = (tmp_path / name for name in ("pids", "writing", "reading"))
    servers = {
        "writes": scripted("slow", str(pids), str(writing), trust=True),
        "reads": scripted("slow-read-only", str(pids), str(reading), trust=True),
    }
    write_servers(isolated_folders.home, servers)
    async with (
        serve_program(tmp_path, workspace, script=CALLS, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        turns = [await ask(agent, workspace, text) for text in ("the writing one", "the reading one")]
        await eventually_async(lambda: writing.exists() and reading.exists())
        await server.end(signal.SIGKILL)
    for called in (writing, reading):
        Path(f"{called}.quick").touch()
    async with (
        serve_program(tmp_path, workspace, script=CALLS, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        found: list[ToolCall] = []
        for turn in turns:
            # From before the restart: it may have ended by now.
            events = await events_of(await agent.follow(turn.snapshot.task_id, turn.snapshot.seq))
            assert events[-1] == StateChange(TaskState.COMPLETED)
            found.append(next(iter(calls_of(events).values())))
        written, read = found
        assert written.error is not None
        assert written.error.type == "interrupted"
        assert read.status is ToolCallStatus.SUCCEEDED
    assert (writing.read_text(), reading.read_text()) == ("call\n", "call\n" * 2)
    for pid in pids.read_text().split():
        process_ends(int(pid))


async def test_what_was_approved_is_not_run_when_its_tool_is_gone_or_another_one(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    (isolated_folders.home / ".gemini").mkdir()
    rules = json.dumps({str(workspace): "TRUST_FOLDER"})
    (isolated_folders.home / ".gemini" / "trustedFolders.json").write_text(rules, encoding="utf-8")
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "gone": ({}, "The MCP server 'a' does not offer ok any more, or is not connected; nothing was called"),
        "other": ({"b": scripted("plain")}, "ok is no longer the tool that was approved; nothing was called"),
        "changed": ({"a": scripted("needs-y")}, "'y' is a required property"),
    }
    asked: dict[str, tuple[Turn, ToolCall]] = {}
    for name in cases:
        (workspace / name).mkdir()
        write_servers(workspace / name, {"a": scripted("plain")})
    async with (
        serve_program(tmp_path, workspace, script=CALLS, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        for name in cases:
            turn = await ask(agent, workspace / name)
            asked[name] = turn, the_call(await events_of(turn))
    for name, (later, _) in cases.items():
        write_servers(workspace / name, later)
        agree(workspace / name)
    async with (
        serve_program(tmp_path, workspace, script=CALLS, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        for name, (_, message) in cases.items():
            turn, call = asked[name]
            done = the_call(await answer(agent, turn, call, "proceed_once"))
            assert done.status is ToolCallStatus.FAILED
            assert done.error is not None
            assert message in (done.error.message or ""), name


@pytest.mark.requirement("A2A-010")
async def test_a_clients_own_server_is_used_for_its_task_alone_with_its_permission(shared: SharedServe) -> None:
    place, agent = place_with(shared, "with theirs", {"mine": scripted("plain")}), shared.agent
    with hostile_http("plain") as (url, _):
        turn = await ask(agent, place, mcp_servers=[{"name": "theirs", "url": url}])
        call = the_call(await events_of(turn))
        assert call.confirmation_request is not None
        assert call.confirmation_request.mcp_details is not None
        assert call.confirmation_request.mcp_details.server_name == "theirs"
        done = the_call(await answer(agent, turn, call, "proceed_once"))
        assert done.output is not None
        assert done.output.text == "fine"
        with pytest.raises(Exception, match="give your own server another name"):
            await ask(agent, place, mcp_servers=[{"name": "mine", "url": url}])
        port = int(url.split(":")[2].split("/")[0])
        process = psutil.Process(shared.program.process.pid)
        await eventually_async(lambda: all(item.raddr.port != port for item in process.net_connections() if item.raddr))


async def test_two_workspaces_have_their_own_servers_and_settings(shared: SharedServe) -> None:
    for name in ("first", "second"):
        folder = place_with(shared, name, {name: scripted("where", env={"NAME": name})})
        turn = await ask(shared.agent, folder)
        done = the_call(await answer(shared.agent, turn, the_call(await events_of(turn)), "proceed_once"))
        assert done.output is not None
        assert done.output.text == f"{name} in {os.path.realpath(folder)}"
