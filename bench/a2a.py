"""A2A tasks and long streams of our server, on a durable journal, beside a minimal a2a-sdk server in memory.

CPU is that of the server process. Both servers emit the same events, the client and its requests are the same.
"""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.figures import Figure, at_most, beside
from bench.load import TOKEN, Answer, Connection, message, rpc
from bench.processes import ServerProgram, clean_home, python_program, server
from isthmus.a2a.extension import URI

ROUNDS = 3
CLIENTS = 32
TASKS = {1: 300, CLIENTS: 960}
EVENTS = 4_000
LONG_EVENTS = 16_000
LONG_ROUNDS = 5
TASK_EVENTS = 4
"""Of a trivial task: the Task, working, its text, completed."""


@dataclass(slots=True)
class Server:
    """One of the two, and what was measured of it."""

    program: ServerProgram
    metadata: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    found: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, name: str, value: float) -> None:
        """Keep a value of this round."""
        self.found.setdefault(name, []).append(value)

    def median(self, name: str) -> float:
        """The median of the rounds."""
        return median(self.found[name])

    def connect(self) -> Connection:
        """A connection with the headers of this server."""
        return Connection(self.program.first_line, {"Accept": "text/event-stream", **self.headers})

    def request(self, text: str) -> bytes:
        """A request for a new task."""
        return rpc("message/stream", {"message": message(text, self.metadata)})


def run(rounds: int | None) -> list[Figure]:
    """Interleaved rounds; medians."""
    with clean_home() as environment, ExitStack() as stack:
        ours = Server(
            stack.enter_context(server(python_program("bench.programs.isthmus_a2a"), environment)),
            {URI: {"workspace_path": environment["PWD"]}},
            {"Authorization": f"Bearer {TOKEN}", "X-A2A-Extensions": URI},
        )
        peer = Server(stack.enter_context(server(python_program("bench.programs.sdk_a2a"), environment)))
        asyncio.run(_measure(ours, peer, rounds))
    return list(_figures(ours, peer))


async def _measure(ours: Server, peer: Server, rounds: int | None) -> None:
    for each in (ours, peer):
        await _tasks(each, 8, 80)  # warms up
        each.found.clear()
    for _ in range(rounds or ROUNDS):
        for clients, count in TASKS.items():
            for each in (ours, peer):
                await _tasks(each, clients, count)
        for each in (ours, peer):
            await _stream(each, EVENTS)
    for _ in range(rounds or LONG_ROUNDS):
        await _stream(ours, LONG_EVENTS)
    for each in (ours, peer):
        each.add("memory", each.program.memory())


async def _tasks(each: Server, clients: int, count: int) -> None:
    request = each.request("Say hello to everybody who reads this.")
    left = iter(range(count))

    async def work(connection: Connection, left: Iterator[int]) -> None:
        async with connection:
            for _ in left:
                _check(await connection.post(request), TASK_EVENTS)

    before, begin = each.program.cpu(), time.perf_counter()
    await asyncio.gather(*(work(each.connect(), left) for _ in range(clients)))
    seconds = time.perf_counter() - begin
    each.add(f"task {clients}", (each.program.cpu() - before) * 1000 / count)
    each.add(f"rate {clients}", count / seconds)


async def _stream(each: Server, count: int) -> None:
    total = count + TASK_EVENTS - 1
    marks = [1, count // 10, count - count // 10, count]
    cpu: list[float] = []

    def on_event(events: int) -> None:
        while len(cpu) < len(marks) and events >= marks[len(cpu)]:
            cpu.append(each.program.cpu())

    before = each.program.cpu()
    async with each.connect() as connection:
        _check(await connection.post(each.request(f"stream {count}"), on_event), total)
    each.add(f"stream {count}", (each.program.cpu() - before) * 1000 / total)
    each.add(f"flat {count}", (cpu[3] - cpu[2]) / (cpu[1] - cpu[0]))


def _check(answer: Answer, events: int) -> None:
    """Both servers must have done the same work, to its end."""
    if answer.status != 200 or answer.events != events:
        raise RuntimeError(f"expected {events} events, received {answer.events}: {answer.body[-500:]!r}")
    last: Mapping[str, Any] = json.loads(answer.body[answer.body.rindex(b"data: ") + 6 :].partition(b"\r\n")[0].strip())
    if last["result"]["status"]["state"] != "completed" or last["result"]["final"] is not True:
        raise RuntimeError(f"the task did not complete: {last}")


def _figures(ours: Server, peer: Server) -> Iterator[Figure]:
    sdk = "a2a-sdk in memory"
    for clients in TASKS:
        name = f"task {clients}"
        plural = "s" if clients > 1 else ""
        yield beside(
            f"durable task, {clients} client{plural}, CPU",
            ours.median(name),
            "ms",
            sdk,
            peer.median(name),
            at_most=0.35,
        )
    rate = f"rate {CLIENTS}"
    yield beside(f"tasks/s, {CLIENTS} clients", ours.median(rate), "/s", sdk, peer.median(rate), at_least=4)
    stream, flat = f"stream {EVENTS}", f"flat {LONG_EVENTS}"
    yield beside(f"stream of {EVENTS}, CPU per event", ours.median(stream), "ms", sdk, peer.median(stream))
    yield at_most(f"stream of {EVENTS}, CPU per event", ours.median(stream), "ms", 0.3)
    yield at_most(f"stream of {LONG_EVENTS}, last/first tenth", ours.median(flat), "x", 1.15)
    own = f"flat {EVENTS}"
    yield beside(f"stream of {EVENTS}, last/first tenth", ours.median(own), "x", sdk, peer.median(own))
    yield beside("memory after all this", ours.median("memory"), "MiB", sdk, peer.median("memory"))
