"""The agent's side of the Claude protocol against servers that break it, and against two kinds at once."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from isthmus.ide.claude.peer import ClaudePeer
from isthmus.ide.clients.client_base import Deadlines
from isthmus.ide.clients.ide_client import IdeError
from isthmus.ide.editor import Capability
from isthmus.ide.gemini.peer import GeminiPeer
from isthmus.ide.reviews.review import Accepted
from isthmus.parts.editor.directory import EditorDirectory
from support.claude_ide import ClaudeServer, RpcError, claude_server, diagnostic
from support.claude_servers import SublimeServer
from support.editing import make_file
from support.vscode_companion import vscode_companion
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

PATIENT = Deadlines(
    connect=30, first_context=30, close_diff=30, call=30, retry_first=0.01, retry_last=0.05, lost=60, written=0.1
)


async def connected(workspace: Path, deadlines: Deadlines = PATIENT) -> ClaudePeer:
    peer = ClaudePeer(workspace, os.environ, deadlines=deadlines)
    await peer.connect()
    return peer


async def send(server: ClaudeServer, frame: str | bytes) -> None:
    for client in tuple(server.clients):
        await client.send(frame)


@pytest.mark.parametrize(
    "frame",
    [
        "no JSON",
        b"\x00\xff binary",
        "[" * 100_000,
        "[]",
        '{"id": 999999, "result": {}}',
        '{"id": "text", "result": {}}',
        '{"method": "selection_changed"}',
        '{"method": "selection_changed", "params": {"filePath": 5, "selection": []}}',
        '{"method": "at_mentioned", "params": {"filePath": "../../etc/passwd\\u0000"}}',
        '{"method": "diagnostics_changed", "params": null}',
        '{"method": "notifications/tools/list_changed"}',
    ],
    ids=lambda frame: str(frame)[:40],
)
async def test_frames_that_mean_nothing_cost_nothing(workspace: Path, frame: str | bytes) -> None:
    path = make_file(workspace, "a.py")
    async with claude_server(SublimeServer, workspace) as server:
        peer = await connected(workspace)
        await send(server, frame)
        reviewing = asyncio.create_task(peer.open_diff(path, "proposed\n"))
        await server.accept()
        assert await asyncio.wait_for(reviewing, 30) == Accepted("proposed\n")
        assert peer.connected
        assert len(server.headers) == 1, "it is the first connection still"
        await peer.aclose()


async def test_a_frame_over_the_cap_ends_the_connection_and_another_is_made(workspace: Path) -> None:
    async with claude_server(SublimeServer, workspace) as server:
        peer = await connected(workspace)
        await send(server, json.dumps({"method": "log_event", "params": {"text": "x" * 64 * 2**20}}))
        await eventually_async(lambda: len(server.headers) == 2 and peer.connected, what="a second connection")
        assert "1009" in str(peer.problem) or "too big" in str(peer.problem)
        await peer.aclose()


async def test_a_server_that_answers_no_ping_any_more_is_left_and_tried_anew(workspace: Path) -> None:
    async with claude_server(SublimeServer, workspace) as server:
        peer = await connected(workspace, replace(PATIENT, ping=0.05, pong=5.0))
        reviewing = asyncio.create_task(peer.open_diff(str(workspace / "a.py"), "proposed\n"))
        await server.view()
        (frozen,) = server.clients
        frozen.transport.pause_reading()
        await eventually_async(lambda: len(server.headers) == 2, what="a second connection")
        await eventually_async(lambda: len(server.views) == 2, what="the review is shown there")
        last = list(server.views.values())[-1]
        last.answer.set_result(["FILE_SAVED", "after all\n"])
        assert await asyncio.wait_for(reviewing, 30) == Accepted("after all\n")
        frozen.transport.abort()
        await peer.aclose()


async def test_a_server_that_asks_is_answered(workspace: Path) -> None:
    async with claude_server(SublimeServer, workspace) as server:
        answers: list[Any] = []

        async def asked() -> None:
            (client,) = server.clients
            await client.send('{"jsonrpc": "2.0", "id": "s-1", "method": "ping"}')
            await client.send('{"jsonrpc": "2.0", "id": "s-2", "method": "roots/list"}')

        peer = await connected(workspace)
        server.unsolicited = answers.append
        await asked()
        await eventually_async(lambda: len(answers) == 2)
        assert answers[0] == {"jsonrpc": "2.0", "id": "s-1", "result": {}}
        assert answers[1]["error"]["code"] == -32601
        await peer.aclose()


async def test_a_flood_of_selections_leaves_the_last_one(workspace: Path) -> None:
    path = make_file(workspace, "a.py")
    async with claude_server(SublimeServer, workspace) as server:
        server.open = [path]
        peer = await connected(workspace)
        for line in range(2000):
            await server.select(path, "", (line, 0), (line, 0))

        def has_last() -> bool:
            context = peer.context()
            active = context.active_file if context is not None else None
            return active is not None and active.cursor is not None and active.cursor.line == 2000

        await eventually_async(has_last)
        await peer.aclose()


async def test_a_server_of_an_unknown_protocol_version_is_left(workspace: Path) -> None:
    class Old(SublimeServer):
        version = "1999-01-01"

    async with claude_server(Old, workspace):
        peer = ClaudePeer(workspace, os.environ, deadlines=PATIENT)
        with pytest.raises(IdeError, match="known MCP protocol version"):
            await peer.connect()
        await peer.aclose()


async def test_a_server_that_lists_no_tools_is_still_asked_for_reviews(workspace: Path) -> None:
    class Silent(SublimeServer):
        async def result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
            if method == "tools/list":
                raise RpcError(-32601, "Method not found")
            return await super().result(method, params)

    async with claude_server(Silent, workspace) as server:
        peer = await connected(workspace)
        assert peer.offers == {Capability.DIFF, Capability.SELECTION}
        reviewing = asyncio.create_task(peer.open_diff(str(workspace / "a.py"), "proposed\n"))
        await server.accept()
        assert await asyncio.wait_for(reviewing, 30) == Accepted("proposed\n")
        await peer.aclose()


async def test_names_with_underscores_are_understood(workspace: Path) -> None:
    class Underscores(SublimeServer):
        tools: ClassVar[Mapping[str, Sequence[str]]] = {
            "open_diff": ClaudeServer.tools["openDiff"],
            "get_diagnostics": ("uri",),
            "close_tab": ("tab_name",),
        }

        async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            return await self.open_diff(arguments) if name == "open_diff" else await super().call(name, arguments)

    async with claude_server(Underscores, workspace) as server:
        peer = await connected(workspace)
        assert Capability.DIAGNOSTICS in peer.offers
        reviewing = asyncio.create_task(peer.open_diff(str(workspace / "a.py"), "proposed\n"))
        await server.accept()
        assert await asyncio.wait_for(reviewing, 30) == Accepted("proposed\n")
        await peer.aclose()


async def test_a_server_that_tells_all_diagnostics_at_once_is_asked_for_those_of_one_file(workspace: Path) -> None:
    class AllAtOnce(SublimeServer):
        tools: ClassVar[Mapping[str, Sequence[str]]] = {**ClaudeServer.tools, "getDiagnostics": ("nothing",)}

    first, second = make_file(workspace, "a.py"), make_file(workspace, "b.py")
    async with claude_server(AllAtOnce, workspace) as server:
        server.diagnostics = {first: [diagnostic(0, "one")], second: [diagnostic(0, "two")]}
        peer = await connected(workspace)
        assert [each.message for each in await peer.diagnostics(second)] == ["two"]
        await peer.aclose()


async def test_tools_that_come_later_are_offered_then(workspace: Path) -> None:
    class Growing(SublimeServer):
        hidden = frozenset({"openDiff", "getDiagnostics"})

    async with claude_server(Growing, workspace) as server:
        peer = await connected(workspace)
        assert (peer.can_review, Capability.DIAGNOSTICS in peer.offers) == (False, False)
        Growing.hidden = frozenset()
        await server.tell("notifications/tools/list_changed", {})
        await eventually_async(lambda: peer.can_review and Capability.DIAGNOSTICS in peer.offers)
        await peer.aclose()


async def test_an_ide_that_hides_its_diffs_gives_way_to_one_that_shows_them(workspace: Path) -> None:
    class Hiding(SublimeServer):
        hidden = frozenset({"openDiff"})

    directory = EditorDirectory(os.environ)
    async with claude_server(Hiding, workspace) as server, vscode_companion() as window:
        window.discovery(workspace, ideInfo={"name": "vscode", "displayName": "VS Code"})
        assert isinstance(await directory.client(workspace), GeminiPeer)
        await eventually_async(lambda: not server.clients, what="the other one is left")
        await directory.aclose()


async def test_an_ide_that_is_gone_gives_way_to_one_of_the_other_protocol(workspace: Path) -> None:
    directory = EditorDirectory(os.environ)
    async with claude_server(SublimeServer, workspace) as gone:
        pass
    lock = gone.lock()
    async with vscode_companion() as window:
        window.discovery(workspace)
        assert isinstance(await directory.client(workspace), GeminiPeer)
        assert lock.exists(), "somebody else's file"
        await directory.aclose()
