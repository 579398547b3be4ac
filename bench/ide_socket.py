"""The companion's WebSocket for the Claude IDE protocol beside a bare ``websockets`` echo.

Used by :mod:`bench.ide`, in one run with its other figures. Both servers have the same `websockets` client.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from bench.processes import ServerProgram
from isthmus.files.locations import runtime_directory
from isthmus.ide.control import control_client

CALLS = 2_000
LARGE = 1024 * 1024
"""Number of characters of the proposal in the large review."""
LARGE_REVIEWS = 10
IDLE_SECONDS = 10.0
FILES = 10

Call = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Round:
    """Median and 99th percentile of many calls, in seconds."""

    p50: float
    p99: float

    @staticmethod
    def of(seconds: list[float]) -> "Round":
        """Return the figures of a round from its times."""
        return Round(median(seconds), quantiles(seconds, n=100)[98])


@dataclass(frozen=True, slots=True)
class Found:
    """Results: ``calls`` and ``echo`` are the best percentiles of all rounds, ``large`` and ``large_echo`` medians (s).

    ``idle_cpu`` is the share of one processor that an idle companion with ten open files and an agent takes, ``memory``
    its memory in MiB.
    """

    calls: Round
    echo: Round
    large: float
    large_echo: float
    idle_cpu: float
    memory: float


async def measure(companion: ServerProgram, echo: ServerProgram, environment: dict[str, str], rounds: int) -> Found:
    """Measure interleaved rounds of calls, then the rest; the companion is headless, in ``environment``'s folder."""
    workspace = Path(environment["PWD"])
    async with AsyncExitStack() as stack:
        server = json.loads(companion.first_line)["servers"]["claude"]
        agent = await stack.enter_async_context(attached(Path(server["discovery_files"][0])))
        bare = await stack.enter_async_context(connect(echo.first_line, compression=None, max_size=None))
        await greet(agent)
        call: dict[str, Any] = {"name": "getWorkspaceFolders", "arguments": {}}
        ours: list[list[float]] = []
        theirs: list[list[float]] = []
        for _ in range(rounds):
            ours.append(await _timed(lambda: _ask(agent, "tools/call", call), CALLS))
            theirs.append(await _timed(lambda: _echoed(bare, {"method": "tools/call", "params": call}), CALLS))
        await _open_files(environment, workspace)
        before = companion.process_cpu()
        await asyncio.sleep(IDLE_SECONDS)
        idle_cpu = (companion.process_cpu() - before) / IDLE_SECONDS
        memory = companion.memory()
        large, large_echo = await _large(agent, bare, workspace)
    return Found(_best(ours), _best(theirs), large, large_echo, idle_cpu, memory)


def _best(rounds: list[list[float]]) -> Round:
    found = [Round.of(seconds) for seconds in rounds]
    return Round(min(each.p50 for each in found), min(each.p99 for each in found))


def attached(lock_file: Path) -> connect:
    """Return an agent's connection to the companion of a lock file."""
    lock = json.loads(lock_file.read_text(encoding="utf-8"))
    return connect(
        f"ws://127.0.0.1:{lock_file.stem}",
        additional_headers={"X-Claude-Code-Ide-Authorization": lock["authToken"]},
        subprotocols=[Subprotocol("mcp")],
        compression=None,
        max_size=None,
    )


async def greet(agent: ClientConnection) -> None:
    """Introduce the agent, as every session begins."""
    client = {"name": "bench", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    await _ask(agent, "initialize", hello)
    await agent.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')


async def _timed(call: Call, count: int) -> list[float]:
    seconds: list[float] = []
    for _ in range(count):
        begin = time.perf_counter()
        await call()
        seconds.append(time.perf_counter() - begin)
    return seconds


async def _ask(agent: ClientConnection, method: str, params: dict[str, Any]) -> Any:
    """Send a request and return its result; skip notifications in between."""
    await agent.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    return await _answer(agent, 1)


async def _answer(agent: ClientConnection, request_id: int) -> Any:
    while True:
        message = json.loads(await agent.recv())
        if message.get("id") == request_id:
            if "error" in message:
                raise RuntimeError(f"refused: {message['error']}")
            return message["result"]


async def _echoed(bare: ClientConnection, message: dict[str, Any]) -> None:
    await bare.send(json.dumps({"jsonrpc": "2.0", "id": 1, **message}))
    json.loads(await bare.recv())


async def _large(agent: ClientConnection, bare: ClientConnection, workspace: Path) -> tuple[float, float]:
    """Return the times of showing and closing a review of 1 MB, and of echoing the same JSON."""
    path = str(workspace / "large.py")
    proposal = {
        "old_file_path": path,
        "new_file_path": path,
        "new_file_contents": "x = 'a line of it'\n" * (LARGE // 19),
        "tab_name": "large",
    }

    async def reviewed() -> None:
        params = {"name": "openDiff", "arguments": proposal}
        await agent.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}))
        await _ask(agent, "tools/call", {"name": "close_tab", "arguments": {"tab_name": "large"}})

    async def echoed() -> None:
        await _echoed(bare, {"method": "tools/call", "params": {"name": "openDiff", "arguments": proposal}})

    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(LARGE_REVIEWS):
        ours += await _timed(reviewed, 1)
        theirs += await _timed(echoed, 1)
    return median(ours), median(theirs)


async def _open_files(environment: dict[str, str], workspace: Path) -> None:
    (running,) = control_client.running(runtime_directory(environment))
    for number in range(FILES):
        (workspace / f"file{number}.py").write_text("one\ntwo\nthree\n", encoding="utf-8")
        await asyncio.to_thread(control_client.ask, running, "open", path=str(workspace / f"file{number}.py"))
