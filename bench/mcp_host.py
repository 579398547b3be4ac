"""Calls of MCP tools beside the bare SDK client on the same server, and discovery beside the slowest server.

The servers are real: mcp-server-time from PyPI, server-everything from npm, and one on the SDK's low-level API. The
SDK's client is the peer for calls; a turn also checks the arguments, watches for silence, and renders the result.
Discovery is by a host in this process, with an empty cache and with the cache of the first start. The first prompt is
typed to ``isthmus`` in a terminal; a turn without a user waits for servers that are still connecting.
"""

import asyncio
import contextlib
import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, cast

import psutil

from bench.figures import Figure, at_most, beside
from bench.processes import ROOT, clean_home, measure, program
from isthmus.mcp_host.host import HostOptions, McpHost
from isthmus.tools.port.base import Approved, CallContext, Tool, ToolContext, ToolSucceeded
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope, ToolSet
from isthmus.tools.port.user_question import no_user_to_ask
from isthmus.tools.port.workspace import Workspace

ROUNDS = 5
CALLS = 150
"""Number of calls of each kind in a round."""
PACKAGES = ROOT / "tests" / "peers" / "node" / "node_modules" / "@modelcontextprotocol"
ECHO = [sys.executable, "-m", "bench.programs.mcp_echo"]
MARK = "ISTHMUS_BENCH_MCP"
DISCOVERY_SECONDS = 120.0
PROMPT = "\u203a ".encode()
PROMPT_SECONDS = 60.0


def run(rounds: int | None) -> list[Figure]:
    """Run interleaved rounds and return medians."""
    with clean_home() as environment:
        return asyncio.run(_run(rounds or ROUNDS, {**environment, MARK: environment["HOME"]}))


async def _run(rounds: int, environment: Mapping[str, str]) -> list[Figure]:
    figures = await _calls(rounds, environment)
    figures += await _discovery(max(1, rounds // 2), environment)
    figures += _first_prompt(rounds, environment)
    figures.append(at_most("processes left after exit", float(len(_left(environment))), "", 0))
    return figures


# --- Calls -----------------------------------------------------------------------------------------------------------


async def _calls(rounds: int, environment: Mapping[str, str]) -> list[Figure]:
    """Return the time of a call over a connection of the host, and in a turn, beside the SDK's client."""
    folder = Path(environment["PWD"])
    found: dict[str, list[float]] = {"bare": [], "connection": [], "tool": []}
    async with _bare(environment) as bare, _hosting({"echo": _echo(environment)}, environment) as host:
        scope = ToolScope(folder)
        tool = (await host.tools(scope)).tools["echo"]
        (connection,) = await host.in_scope(scope)
        context = ToolContext(Workspace(folder), "call", folder / "outputs", {})

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            return

        async def over_connection() -> None:
            await connection.call("echo", {"text": "hello"}, progress)

        async def as_a_turn() -> None:
            await _turn_call(tool, context)

        ways: dict[str, Callable[[], Awaitable[None]]] = {
            "bare": bare,
            "connection": over_connection,
            "tool": as_a_turn,
        }
        for call in ways.values():
            await _timed(call, CALLS // 2)
        for _ in range(rounds):
            for name, call in ways.items():
                found[name].append(await _timed(call, CALLS))
    # Ratios are taken within each round, because the load of the machine changes.
    ratio = {name: median(a / b for a, b in zip(found[name], found["bare"], strict=True)) for name in found}
    peer = median(found["bare"])
    return [
        beside("a call, over the connection", ratio["connection"] * peer, "ms", "SDK client", peer, at_most=1.1),
        beside("a call, as a turn makes it", ratio["tool"] * peer, "ms", "SDK client", peer, at_most=1.25),
    ]


async def _timed(call: Callable[[], Awaitable[None]], count: int) -> float:
    """Return the median time of a call in milliseconds."""
    seconds: list[float] = []
    for _ in range(count):
        begin = time.perf_counter()
        await call()
        seconds.append(time.perf_counter() - begin)
    return median(seconds) * 1000


async def _turn_call(tool: Tool, context: ToolContext) -> None:
    arguments = {"text": "hello"}
    approved = Approved(await tool.propose(arguments, context))
    running = CallContext.of(context, approved, lambda text: None, no_user_to_ask)
    result = await tool.run(arguments, running)
    assert isinstance(result, ToolSucceeded)
    assert "hello" in result.for_model


@contextlib.asynccontextmanager
async def _bare(environment: Mapping[str, str]) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Yield a function that makes a call with the SDK's own client and transport."""
    from mcp import Client, StdioServerParameters

    parameters = StdioServerParameters(command=ECHO[0], args=ECHO[1:], env=dict(environment), cwd=environment["PWD"])
    async with Client(parameters, mode="legacy") as client:

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            return

        async def call() -> None:
            result = await client.call_tool("echo", {"text": "hello"}, progress_callback=progress)
            assert cast("Any", result.content[0]).text == "hello"

        yield call


def _echo(environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        "command": ECHO[0],
        "args": ECHO[1:],
        "env": {"PYTHONPATH": environment["PYTHONPATH"], **_mark(environment)},
    }


def _mark(environment: Mapping[str, str]) -> dict[str, str]:
    return {MARK: environment[MARK]}


# --- Discovery -------------------------------------------------------------------------------------------------------


def _servers(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return five servers in Python and five in Node."""
    env = _mark(environment)
    python = [
        {"command": program("mcp-server-time"), "args": ["--local-timezone", "UTC"], "env": {**env, "N": str(number)}}
        for number in range(5)
    ]
    node = [
        {
            "command": "node",
            "args": [str(PACKAGES / "server-everything" / "dist" / "index.js"), "stdio"],
            "env": {**env, "N": str(number)},
        }
        for number in range(5)
    ]
    return {f"server{number}": server for number, server in enumerate([*python, *node])}


async def _discovery(rounds: int, environment: Mapping[str, str]) -> list[Figure]:
    servers = _servers(environment)
    waits: list[float] = []
    ratios: list[float] = []
    cold: list[float] = []
    for number in range(rounds):
        cache = Path(environment["HOME"]) / f"cache{number}"
        seconds, slowest = await _discover(servers, environment, cache)
        cold.append(seconds)
        ratios.append(seconds / slowest)
        async with _hosting(servers, environment, cache=cache) as host:
            begin = time.perf_counter()
            tools = (await host.tools(ToolScope(Path(environment["PWD"])))).tools
            waits.append((time.perf_counter() - begin) * 1000)
            assert len(tools) > 50, len(tools)
    seconds = median(cold)
    return [
        beside("10 servers, cold", seconds, "s", "the slowest, then", seconds / median(ratios), at_most=1.15),
        at_most("10 servers, from the cache", median(waits), "ms", 250),
    ]


async def _discover(servers: Mapping[str, Any], environment: Mapping[str, str], cache: Path) -> tuple[float, float]:
    """Return the seconds until all servers were connected, and the slowest server's own connecting time."""
    async with _hosting(servers, environment, cache=cache, wait_seconds=DISCOVERY_SECONDS) as host:
        scope = ToolScope(Path(environment["PWD"]))
        begin = time.perf_counter()
        await host.tools(scope)
        seconds = time.perf_counter() - begin
        states = {status.name: status.state for status in await host.servers(scope)}
        assert set(states.values()) == {ServerState.CONNECTED}, states
        slowest = max(connection.connect_took or 0.0 for connection in await host.in_scope(scope))
        return seconds, slowest


@contextlib.asynccontextmanager
async def _hosting(
    servers: Mapping[str, Any], environment: Mapping[str, str], **options: Any
) -> AsyncGenerator[McpHost]:
    home = Path(environment["HOME"])
    _write(home, servers)
    settings: dict[str, Any] = {"wait_seconds": 60.0, "environment": dict(environment), **options}
    host = McpHost(ToolSet(), HostOptions(home, **settings))
    try:
        yield host
    finally:
        await host.aclose()


def _write(home: Path, servers: Mapping[str, Any]) -> None:
    (home / ".gemini").mkdir(exist_ok=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


# --- The program -----------------------------------------------------------------------------------------------------


def _first_prompt(rounds: int, environment: Mapping[str, str]) -> list[Figure]:
    """Measure the first prompt with twenty servers, one of which hangs, and without servers."""
    home = Path(environment["HOME"])
    env = {"PYTHONPATH": environment["PYTHONPATH"], **_mark(environment)}
    hanging = {"command": sys.executable, "args": ["-S", "-c", "import time; time.sleep(1000)"], "env": env}
    echo = {f"echo{number}": {"command": ECHO[0], "args": ECHO[1:], "env": env} for number in range(19)}
    headless = [program("isthmus"), "-p", "hi", "-m", "demo"]
    _write(home, {})
    _prompt_seconds(environment)
    alone = [_prompt_seconds(environment) for _ in range(rounds)]
    turn_alone = measure(headless, environment).wall
    _write(home, {"hanging": hanging, **echo})
    with_servers = [_prompt_seconds(environment) for _ in range(rounds)]
    new = measure(headless, environment).wall
    known: list[float] = []
    hung: list[float] = []
    for _ in range(rounds):
        _write(home, echo)
        known.append(measure(headless, environment).wall)
        _write(home, {"hanging": hanging, **echo})
        hung.append(measure(headless, environment).wall)
    peer = "no servers"
    return [
        beside("first prompt, 20 servers, 1 hangs", median(with_servers), "s", peer, median(alone), at_most=2),
        beside("-p, the same, first run", new, "s", peer, turn_alone, no_budget="none: it waits 20 s"),
        beside("-p, 19 known servers", median(known), "s", peer, turn_alone, no_budget="none: they start beside it"),
        beside("-p, and 1 that hung before", median(hung), "s", "without it", median(known), at_most=1.3),
    ]


def _prompt_seconds(environment: Mapping[str, str]) -> float:
    """Return the time from the start of ``isthmus`` in a terminal to its prompt."""
    ours, its = pty.openpty()
    begin = time.perf_counter()
    command = [program("isthmus"), "-m", "demo"]
    process = subprocess.Popen(
        command,
        env=dict(environment),
        cwd=environment["PWD"],
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    output = b""
    try:
        while PROMPT not in output:
            if not select.select([ours], [], [], PROMPT_SECONDS)[0]:
                raise RuntimeError(f"expected a prompt, received {output[-500:]!r}")
            output += os.read(ours, 2**16)
        return time.perf_counter() - begin
    finally:
        process.terminate()
        process.wait(30)
        os.close(ours)


def _left(environment: Mapping[str, str]) -> list[int]:
    """Return the processes of this run's servers that have not ended after two seconds."""
    deadline = time.monotonic() + 2
    while True:
        left: list[int] = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == environment[MARK] and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(process.pid)
        left = [pid for pid in left if pid != os.getpid()]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)
