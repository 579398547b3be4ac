"""A2A tasks, long streams and re-subscribing at our server, on a durable journal, beside minimal a2a-sdk servers.

CPU is the server process's. All servers emit the same events, and the client and its A2A 0.3 requests are the
same for each. The coding agent, which asks a provider for the text, is measured beside a server that repeats it.
:mod:`bench.sdk_peers` lists the servers and their budgets. One of them is on SQLite and gets only a few
tasks; if it fails (its database is locked now and then), that is printed, and it has fewer figures.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import Figure, at_most, beside
from bench.load import TOKEN, Answer, Connection, message, rpc
from bench.processes import ServerProgram, clean_home, program, python_program, server
from bench.sdk_peers import INSTALLED, SdkPeer, sdk_peers
from isthmus.a2a.protocol.extension import URI

ROUNDS = 3
CLIENTS = 32
TASKS = {1: 300, 8: 480, CLIENTS: 640}
TURNS = {1: 150, CLIENTS: 320}
"""Number of turns of the coding agent, by the number of clients."""
FEW_TASKS = {1: 30, 8: 48, CLIENTS: 64}
SUBSCRIPTIONS = 40
ATTEMPTS = 3
"""Maximum number of failures of a peer before it is left out."""
EVENTS = 2_000
LONG_EVENTS = 16_000
LONG_ROUNDS = 5
TASK_EVENTS = 4
"""Number of events of a trivial task: the Task, working, its text, completed."""


@dataclass(slots=True)
class Server:
    """Our server or a peer, with its measurements."""

    program: ServerProgram
    peer: SdkPeer | None = None
    metadata: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    found: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    is_program: bool = False
    """Whether it is the program that users start, which does not report figures."""
    failed: set[str] = field(default_factory=set[str])
    """Measurements in which the peer failed, and which are skipped from then on."""

    def add(self, name: str, value: float) -> None:
        """Add a value of this round."""
        self.found.setdefault(name, []).append(value)

    def median(self, name: str) -> float:
        """Return the median of the rounds."""
        return median(self.found[name])

    def connect(self) -> Connection:
        """Return a connection with the headers of this server."""
        url = self.program.first_line.rpartition(" ")[2]
        return Connection(url, {"Accept": "text/event-stream", **self.headers})

    def cpu(self) -> float:
        """Return the CPU seconds used so far."""
        return self.program.process_cpu() if self.is_program else self.program.cpu()

    def request(self, text: str) -> bytes:
        """Return a request for a new task."""
        return rpc("message/stream", {"message": message(text, self.metadata)})


def run(rounds: int | None) -> list[Figure]:
    """Run interleaved rounds and return medians."""
    with clean_home() as environment, ExitStack() as stack:
        ours = Server(
            stack.enter_context(server(python_program("bench.programs.isthmus_a2a"), environment)),
            metadata={URI: {"workspace_path": environment["PWD"]}},
            headers={"Authorization": f"Bearer {TOKEN}", "X-A2A-Extensions": URI},
        )
        peers = [
            Server(stack.enter_context(server(peer.command, {**environment, **peer.environment})), peer)
            for peer in sdk_peers(Path(environment["TMPDIR"], "sdk.sqlite"))
        ]
        if not INSTALLED.is_file():
            print(
                "  a2a-sdk 1.3, for which the budgets are set, is not installed; `make bench` installs it.",
                flush=True,
            )
        coding = stack.enter_context(_coding_agent(environment))
        asyncio.run(_measure(ours, coding, peers, rounds))
    return [*_figures(ours, peers), *_turns(coding, peers)]


@contextmanager
def _coding_agent(environment: Mapping[str, str]) -> Generator[Server]:
    """Run the program that users start, and a provider for it."""
    home = Path(environment["HOME"])
    token = home / "token"
    with server(python_program("bench.programs.provider"), environment) as provider:
        given = {**environment, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": provider.first_line}
        options = ["--model", "openai:bench", "--no-ide", "--user-max-running", "64", "--log-level", "warning"]
        options += ["--workspace", environment["PWD"], "--token-file", str(token)]
        with server([program("isthmus"), "serve", *options], given) as running:
            yield Server(
                running,
                metadata={URI: {"workspace_path": environment["PWD"]}},
                headers={"Authorization": f"Bearer {token.read_text('utf-8').strip()}", "X-A2A-Extensions": URI},
                is_program=True,
            )


async def _measure(ours: Server, coding: Server, peers: Sequence[Server], rounds: int | None) -> None:
    servers = (ours, *peers)
    for each in (*servers, coding):
        await _bear(each, "the first tasks", lambda each: _tasks(each, 8, FEW_TASKS[8]))  # warms up
        each.found.clear()
    for _ in range(rounds or ROUNDS):
        for clients in TASKS:
            for each in servers:
                few = each.peer is not None and each.peer.few_tasks
                count = (FEW_TASKS if few else TASKS)[clients]
                await _bear(each, f"{clients} clients", partial(_tasks, clients=clients, count=count))
            if clients in TURNS:
                await _tasks(coding, clients, TURNS[clients])
        for each in servers:
            if each.peer is None or each.peer.streams:
                await _bear(each, "a stream", partial(_stream, count=EVENTS))
    for each in servers:
        if each.peer is None or each.peer.tells_at_once:
            await _bear(each, "re-subscribing", _subscribe)
    for _ in range(rounds or LONG_ROUNDS):
        await _stream(ours, LONG_EVENTS)
    for each in servers:
        each.add("memory", each.program.memory())


async def _bear(each: Server, what: str, measure: Callable[[Server], Awaitable[None]]) -> None:
    """Measure a server. A peer that fails is left out of this measurement, with a message; ours must not fail."""
    for attempt in range(1, ATTEMPTS + 1):
        if what in each.failed:
            return
        try:
            await measure(each)
            return
        except (RuntimeError, OSError, TimeoutError) as error:
            if each.peer is None:
                raise
            if attempt == ATTEMPTS:
                each.failed.add(what)
                print(
                    f"  {each.peer.name} is left out of {what}: {type(error).__name__} {str(error)[-300:]}", flush=True
                )


async def _subscribe(each: Server) -> None:
    """Measure the time from a request to follow a running task to its first event, which has the task's state."""
    async with each.connect() as connection:
        opened = await connection.first_event(each.request("hold"))
    task = json.loads(opened.body[opened.body.index(b"data: ") + 6 :].partition(b"\n")[0])["result"]
    request = rpc("tasks/resubscribe", {"id": task["id"]})
    for _ in range(SUBSCRIPTIONS):
        async with each.connect() as connection:
            answer = await connection.first_event(request)
        if b'"error"' in answer.body:
            raise RuntimeError(f"expected the task, received {answer.body[-300:]!r}")
        each.add("subscribe", answer.seconds * 1000)


async def _tasks(each: Server, clients: int, count: int) -> None:
    left = iter(range(count))

    async def work(connection: Connection, left: Iterator[int]) -> None:
        async with connection:
            for _ in left:
                _check(await connection.post(each.request("Say hello to everybody who reads this.")), TASK_EVENTS)

    before, begin = each.cpu(), time.perf_counter()
    await asyncio.gather(*(work(each.connect(), left) for _ in range(clients)))
    seconds = time.perf_counter() - begin
    each.add(f"task {clients}", (each.cpu() - before) * 1000 / count)
    each.add(f"rate {clients}", count / seconds)


async def _stream(each: Server, count: int) -> None:
    total = count + TASK_EVENTS - 1
    tenth = count // 10
    # Not the very first and last events: the server is slightly ahead of the events received here.
    marks = [tenth // 2, tenth // 2 + tenth, count - tenth // 2 - tenth, count - tenth // 2]
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
    """Check that a server has done the same work as the others, to its end."""
    if answer.status != 200 or answer.events != events:
        raise RuntimeError(f"expected {events} events, received {answer.events}: {answer.body[-500:]!r}")
    last: Mapping[str, Any] = json.loads(answer.body[answer.body.rindex(b"data: ") + 6 :].partition(b"\r\n")[0].strip())
    if last["result"]["status"]["state"] != "completed" or last["result"]["final"] is not True:
        raise RuntimeError(f"the task did not complete: {last}")


def _figures(ours: Server, peers: Sequence[Server]) -> Iterator[Figure]:
    def rows(title: str, name: str, unit: str) -> Iterator[Figure]:
        for peer, found in ((each.peer, each.found) for each in peers):
            if peer is not None and name in found:
                yield _beside(peer, title, name, ours.median(name), unit, median(found[name]))

    for clients in TASKS:
        plural = "s" if clients > 1 else ""
        yield from rows(f"durable task, {clients} client{plural}, CPU", f"task {clients}", "ms")
    for clients in TASKS:
        yield from rows(f"tasks/s, {clients} client{'s' if clients > 1 else ''}", f"rate {clients}", "/s")
    stream, flat = f"stream {EVENTS}", f"flat {LONG_EVENTS}"
    yield from rows(f"stream of {EVENTS}, CPU per event", stream, "ms")
    yield at_most(f"stream of {EVENTS}, CPU per event", ours.median(stream), "ms", 0.3)
    yield at_most(f"stream of {LONG_EVENTS}, last/first tenth", ours.median(flat), "x", 1.15)
    yield from rows(f"stream of {EVENTS}, last/first tenth", f"flat {EVENTS}", "x")
    yield from rows("re-subscribe to first event", "subscribe", "ms")
    yield from rows("memory after all this", "memory", "MiB")


def _turns(coding: Server, peers: Sequence[Server]) -> Iterator[Figure]:
    """Yield the CPU of the coding agent's turn beside the peer that has a budget for it."""
    for each in peers:
        if each.peer is None:
            continue
        for clients, limit in each.peer.turns_at_most.items():
            name = f"task {clients}"
            if name in each.found:
                title = f"coding agent's turn, {clients} client{'s' if clients > 1 else ''}, CPU"
                theirs = each.median(name)
                yield beside(title, coding.median(name), "ms", f"{each.peer.name}, echo", theirs, at_most=limit)


def _beside(peer: SdkPeer, title: str, name: str, value: float, unit: str, theirs: float) -> Figure:
    """Return a figure beside a peer's. Only CPU and task rate have budgets, with one client and with many."""
    is_cpu, is_rate = name in ("task 1", f"task {CLIENTS}"), name == f"rate {CLIENTS}"
    cpu = peer.cpu_at_most if is_cpu else None
    rate = peer.rate_at_least if is_rate else None
    reason = peer.budget if is_cpu or is_rate else ""
    return beside(title, value, unit, peer.name, theirs, at_most=cpu, at_least=rate, no_budget=reason)
