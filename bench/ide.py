"""The companion: its start, its memory, and the time of a tool call.

The peers are the MCP SDK's server over the same HTTP and a bare JSON echo over ``websockets``, the least possible work.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from statistics import median

from websockets.asyncio.client import connect

from bench import ide_selection, ide_socket
from bench.figures import Figure, at_most, beside
from bench.load import Connection, rpc
from bench.processes import ServerProgram, clean_home, program, python_program, server

ROUNDS = 4
STARTS = 5
CALLS = 1_000
_VERSION = "2025-06-18"
_INITIALIZE = {
    "protocolVersion": _VERSION,
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}

Call = Callable[[], Awaitable[object]]


def run(rounds: int | None) -> list[Figure]:
    """Run interleaved rounds; return the best p50 of calls, and medians of the other figures."""
    with clean_home() as environment:
        workspace = environment["PWD"]
        companion = [program("isthmus"), "companion", "--editor", "headless", "--workspace", workspace, "--json"]
        commands = {
            "companion": [*companion, "--fresh"],
            "sdk": python_program("bench.programs.sdk_mcp"),
            "sdk streams": python_program("bench.programs.sdk_mcp", "--sse"),
            "echo": python_program("bench.programs.websocket_echo"),
        }
        starts: dict[str, list[ServerProgram]] = {"companion": [], "sdk": []}
        for _ in range(rounds or STARTS):
            for name, begun in starts.items():
                with server(commands[name], environment) as running:
                    begun.append(running)
        with ExitStack() as stack:
            servers = {name: stack.enter_context(server(commands[name], environment)) for name in commands}
            best = asyncio.run(_calls(servers, workspace, rounds or ROUNDS))
            memory = {name: running.memory() for name, running in servers.items()}
            socket = asyncio.run(
                ide_socket.measure(servers["companion"], servers["echo"], environment, rounds or ROUNDS)
            )
        selection = asyncio.run(ide_selection.measure(environment))
    cpu = {name: median(running.ready_cpu for running in begun) for name, begun in starts.items()}
    seconds = {name: min(running.ready_seconds for running in begun) for name, begun in starts.items()}
    sdk = "MCP SDK server"
    return [
        at_most("listening, CPU until then", cpu["companion"], "s", 0.4),
        at_most("listening, best time", seconds["companion"], "s", 0.4),
        beside("listening, CPU until then", cpu["companion"], "s", sdk, cpu["sdk"]),
        at_most("memory after the calls", memory["companion"], "MiB", 40),
        beside("memory after the calls", memory["companion"], "MiB", sdk, memory["sdk"]),
        beside("tools/call, best p50", best["companion"], "ms", f"{sdk}, JSON", best["sdk"]),
        beside("tools/call, best p50", best["companion"], "ms", f"{sdk}, streams", best["sdk streams"]),
        beside("tools/call, best p50", best["companion"], "ms", "websockets echo", best["echo"]),
        at_most("selection to agent, beyond the debounce", selection * 1e3, "ms", 20),
        *_socket_figures(socket, best["sdk"]),
    ]


def _socket_figures(socket: ide_socket.Found, sdk: float) -> list[Figure]:
    """Return the figures of the Claude IDE protocol's WebSocket; p99 leaves room for other work of the machine."""
    echo, name = "websockets echo", "WebSocket tools/call, best"
    calls, bare = socket.calls, socket.echo
    return [
        beside(f"{name} p50", calls.p50 * 1e3, "ms", echo, bare.p50 * 1e3, at_most=1.15),
        beside(f"{name} p99", calls.p99 * 1e3, "ms", echo, bare.p99 * 1e3, at_most=2.0),
        beside(f"{name} p50", calls.p50 * 1e3, "ms", "MCP SDK server, HTTP", sdk),
        beside("1 MB openDiff and close_tab", socket.large * 1e3, "ms", echo, socket.large_echo * 1e3, at_most=2.0),
        at_most("idle, ten open files, CPU", socket.idle_cpu * 100, "% of a core", 1.0),
        at_most("idle, ten open files, memory", socket.memory, "MiB", 40),
    ]


async def _calls(servers: dict[str, ServerProgram], workspace: str, rounds: int) -> dict[str, float]:
    """Return the best p50 of each server, in milliseconds."""
    best: dict[str, float] = {}
    async with AsyncExitStack() as stack:
        calls: dict[str, Call] = {}
        for name, running in servers.items():
            calls[name] = await (_echo if name == "echo" else _mcp)(running, workspace, stack)
        for _ in range(rounds):
            for name, call in calls.items():
                seconds = [await _timed(call) for _ in range(CALLS)]
                best[name] = min(best.get(name, 1e9), median(seconds) * 1000)
    return best


async def _timed(call: Call) -> float:
    begin = time.perf_counter()
    await call()
    return time.perf_counter() - begin


async def _mcp(running: ServerProgram, workspace: str, stack: AsyncExitStack) -> Call:
    """Open a session with a server over streamable HTTP; return a function that calls a tool in it."""
    headers = {"Accept": "application/json, text/event-stream"}
    if running.first_line.startswith("{"):
        ready = json.loads(running.first_line)
        url = f"http://127.0.0.1:{ready['port']}/mcp"
        headers["Authorization"] = f"Bearer {_token(Path(ready['discovery_file']))}"
    else:
        url = running.first_line
    connection = await stack.enter_async_context(Connection(url, headers))
    initialized = await connection.post(rpc("initialize", _INITIALIZE))
    session = initialized.head.partition(b"mcp-session-id:")[2].partition(b"\r\n")[0].strip().decode()
    headers |= {"mcp-session-id": session, "mcp-protocol-version": _VERSION}
    begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await connection.post(json.dumps(begun).encode())
    request = _request(workspace)

    async def call() -> None:
        answer = await connection.post(request)
        if answer.status != 200 or b'"content"' not in answer.body:
            raise RuntimeError(f"tools/call was answered by {answer.status}: {answer.body[:500]!r}")

    return call


async def _echo(running: ServerProgram, workspace: str, stack: AsyncExitStack) -> Call:
    socket = await stack.enter_async_context(connect(running.first_line, compression=None))
    request = _request(workspace).decode()

    async def call() -> None:
        await socket.send(request)
        json.loads(await socket.recv())

    return call


def _token(discovery_file: Path) -> str:
    token: str = json.loads(discovery_file.read_text(encoding="utf-8"))["authToken"]
    return token


def _request(workspace: str) -> bytes:
    return rpc("tools/call", {"name": "closeDiff", "arguments": {"filePath": f"{workspace}/nothing.py"}})
