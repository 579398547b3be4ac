"""Servers of the official SDKs that are killed and started again under a turn: at most the running call is lost."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import psutil
import pytest

from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.base import Tool
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.extended import first_of
from support.mcp_hosting import everything_over, hosting, listening, node_server, official_python, status_when
from support.ports import free_port
from support.tool_calls import running, said, success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


Waiting: TypeAlias = tuple[str, dict[str, Any]]
"""A tool that takes long and reports progress at once, and its arguments."""
NODE_WAITS: Waiting = ("trigger-long-running-operation", {"duration": 600, "steps": 6_000})
PYTHON_WAITS: Waiting = ("wait", {"duration": 600})


@dataclass
class Peer:
    """A server at a URL that can be started at a port; ``waiting`` is its call that takes long."""

    start: Callable[[int], AbstractContextManager[object]]
    key: str
    path: str
    waiting: "Waiting"

    def settings(self, port: int) -> dict[str, Any]:
        return {self.key: f"http://127.0.0.1:{port}{self.path}", "timeout": 60_000}


def node(transport: str, key: str, path: str) -> Peer:
    return Peer(lambda port: everything_over(transport, port), key, path, NODE_WAITS)


def python(transport: str, key: str, path: str) -> Peer:
    return Peer(lambda port: listening(official_python(transport, port), port), key, path, PYTHON_WAITS)


PEERS = {
    "node over HTTP": node("streamableHttp", "httpUrl", "/mcp"),
    "node over SSE": node("sse", "url", "/sse"),
    "python over HTTP": python("streamable-http", "httpUrl", "/mcp"),
    "python over SSE": python("sse", "url", "/sse"),
}
PROGRAMS = {
    "node": (node_server("server-everything", "stdio"), NODE_WAITS),
    "python": ({"command": official_python("stdio")[0], "args": official_python("stdio")[1:]}, PYTHON_WAITS),
}


class Turn:
    """The calls of one turn, one after another."""

    def __init__(self, host: McpHost, workspace: Path) -> None:
        self._host = host
        self._scope = ToolScope(workspace)
        self._context = tool_context(workspace)
        self._calls = 0

    async def tool(self, name: str) -> Tool:
        return (await self._host.tools(self._scope)).tools[name]

    async def echo(self) -> None:
        self._calls += 1
        text = f"call {self._calls}"
        assert said(await success_of(await self.tool("echo"), self._context, message=text)) == f"Echo: {text}"

    async def begin(self, waiting: Waiting) -> "asyncio.Task[Any]":
        """Begin a call that takes long, and return it when it reports progress."""
        began = asyncio.Event()
        name, arguments = waiting
        tool = await self.tool(name)
        context = running(self._context, progress=lambda _: began.set())
        calling = asyncio.create_task(tool.run(arguments, context))
        async with asyncio.timeout(60):
            await began.wait()
        return calling

    async def is_connected(self) -> None:
        await status_when(self._host, self._scope, "s", ServerState.CONNECTED)


@pytest.mark.parametrize("peer", first_of(PEERS.values(), ids=PEERS))
async def test_a_server_at_a_url_may_be_started_again_at_any_moment_of_a_turn(
    home: Path, workspace: Path, peer: Peer
) -> None:
    port = free_port()
    async with contextlib.AsyncExitStack() as stack:
        with peer.start(port):
            host = await stack.enter_async_context(hosting(home, {"s": peer.settings(port)}))
            turn = Turn(host, workspace)
            await turn.echo()
            waiting = await turn.begin(peer.waiting)
        with pytest.raises(ToolFailure, match="whether the call had an effect is not known, and it was not repeated"):
            await waiting
        call_while_it_is_away = asyncio.create_task(turn.echo())
        again = peer.start(port)
        await asyncio.to_thread(again.__enter__)
        try:
            await call_while_it_is_away
        finally:
            await asyncio.to_thread(again.__exit__, None, None, None)
        if peer.path == "/mcp":
            # This event loop stands still meanwhile: nothing but the refusal of the session tells of the restart.
            stack.enter_context(peer.start(port))
        else:
            await asyncio.to_thread(stack.enter_context, peer.start(port))
        await turn.echo()
        await turn.is_connected()


@pytest.mark.parametrize(("settings", "waiting"), first_of(PROGRAMS.values(), ids=PROGRAMS, are_rows=True))
async def test_a_program_that_is_killed_is_started_again_for_the_next_call(
    home: Path, workspace: Path, settings: dict[str, Any], waiting: Waiting
) -> None:
    async with hosting(home, {"s": settings}) as host:
        turn = Turn(host, workspace)
        await turn.echo()
        calling = await turn.begin(waiting)
        os.killpg(group_of(settings), signal.SIGKILL)
        with pytest.raises(ToolFailure, match="whether the call had an effect is not known, and it was not repeated"):
            await calling
        await turn.echo()
        before = group_of(settings)
        os.killpg(before, signal.SIGKILL)
        await eventually_async(lambda: group_of(settings) not in (0, before), what="it is started again")
        await turn.echo()
        await turn.is_connected()


def group_of(settings: dict[str, Any]) -> int:
    """Return the process group of a program that this process has started; 0 if it does not run."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if process.cmdline()[-len(settings["args"]) :] == settings["args"]:
                return os.getpgid(process.pid)
    return 0
