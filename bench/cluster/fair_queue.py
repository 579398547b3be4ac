"""The queue: taking tasks of a long one, and the order in which tasks of users start of whom one has queued many."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cluster.replicas import database_cpu
from bench.figures import Figure, at_most, beside, percentile
from isthmus.agent.session.turn import AgentTurn
from isthmus.client import AgentClient, PromptMessage
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.placement import Placement
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.journal.port.base import Journal
from isthmus.journal.port.queue import QueueScope
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.postgres.connection import Database
from isthmus.journal.postgres.journal import PostgresJournal
from isthmus.models.port.base import Text

if TYPE_CHECKING:
    from support.postgres import Postgres

USERS = 50
AT_ONCE = 2_000
TAKEN = 4
"""Number of tasks of one take, as many as there are free slots."""
PART = 50
"""Number of takes in a row whose times are looked at together."""
TAKE_MILLISECONDS = 3.0
QUEUED = 200
OTHERS = 10
SLOTS = (2, 2)
"""Slots of each server."""
JOB_SECONDS = 0.02
OpenJournal = Callable[[], Awaitable[Journal]]
FAIR = 1 / (OTHERS + 1)
SHARE = 0.11
OVERTAKEN = OTHERS + 1
"""Budget of the starts beyond a turn while a task waits: a second turn. It holds on a busy machine, too."""
DEADLINE_SECONDS = 60.0


def fair_queue(database: "Postgres", folder: Path, waiting: int, takes: int, starts: int) -> Iterator[Figure]:
    """Measure ``takes`` takes of a queue of ``waiting`` tasks, then ``starts`` starts in turns."""
    name = f"take {TAKEN} of {waiting:,} waiting tasks of {USERS} users"
    url = database.database()
    asyncio.run(add_tasks(partial(PostgresJournal.open, url), waiting))
    for state in ("new", "analyzed"):
        # The database plans by its statistics, of which there are none until it has first looked at the table.
        before = time.process_time() + database_cpu(database)
        times = asyncio.run(take_times(partial(PostgresJournal.open, url), takes))
        cpu = (time.process_time() + database_cpu(database) - before) * 1000 / takes
        parts = [times[first : first + PART] for first in range(0, takes, PART)]
        for percent in (50, 95):
            best = min(percentile(part, percent) for part in parts)
            title = f"{name}, {state}, p{percent}, best of {len(parts)}"
            if state == "analyzed":
                yield at_most(title, best, "ms", TAKE_MILLISECONDS)
            else:
                yield Figure(title, best, "ms", budget="none: a database's first minute")
        yield Figure(f"CPU of such a take, {state}, with PostgreSQL's", cpu, "ms")
        database.sql("ANALYZE", url.rpartition("/")[2])
    commits = asyncio.run(commit_times(url, takes))
    yield Figure("a commit alone, p50", percentile(commits, 50), "ms")
    turns = asyncio.run(take_turns(partial(PostgresJournal.open, database.database()), folder, starts))
    yield at_most(f"share of a user who queued {QUEUED} (fair {FAIR:.3f})", turns.share, "", SHARE)
    yield at_most(f"starts beyond a turn, while one of {OTHERS} others waits", turns.overtaken, "", OVERTAKEN)
    yield beside("longest wait of these beyond a turn", turns.beyond, "ms", "a turn", turns.turn)


async def add_tasks(open_journal: OpenJournal, waiting: int) -> None:
    """Queue tasks of several users."""
    journal = await open_journal()
    try:
        for first in range(0, waiting, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, waiting))
            await asyncio.gather(*(_queue(journal, number) for number in numbers))
    finally:
        await journal.aclose()


async def take_times(open_journal: OpenJournal, takes: int) -> list[float]:
    """Take some of the queued tasks again and again; return the milliseconds of each take, its commit included."""
    journal = await open_journal()
    try:
        return [await _take(journal) for _ in range(takes)]
    finally:
        await journal.aclose()


async def commit_times(url: str, count: int) -> list[float]:
    """Return the milliseconds of commits that write next to nothing: what the disk and the way to it take."""
    connection = await Database(url).connect()
    try:
        times: list[float] = []
        for _ in range(count):
            begin = time.perf_counter()
            await connection.execute("SELECT pg_logical_emit_message(true, 'bench', '')")
            times.append((time.perf_counter() - begin) * 1000)
        return times
    finally:
        await connection.close(timeout=10)


async def _take(journal: Journal) -> float:
    begin = time.perf_counter()
    taken = await journal.queue.take("bench", 600, TAKEN, QueueScope())
    milliseconds = (time.perf_counter() - begin) * 1000
    if len(taken) != TAKEN:
        raise RuntimeError(f"expected {TAKEN} tasks, took {len(taken)}")
    return milliseconds


async def _queue(journal: Journal, number: int) -> None:
    task = NewTask(f"task {number}", f"context {number}", "/work", "Fix it", f"user {number % USERS}")
    await journal.queue.add(task, [Prompt(f"message {number}", "Fix it")])


@dataclass(frozen=True, slots=True)
class Turns:
    """Turns of users: the one's share of all starts, and the longest waits of the others, times in ms."""

    share: float
    overtaken: int
    """Largest number of starts while one of the others waited, beyond the starts of a turn."""
    beyond: float
    """Longest wait of one of the others beyond a turn."""
    turn: float
    """Mean time in which as many tasks start as there are users."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """The wait of a task: its time, and the starts of other tasks since it was queued."""

    milliseconds: float
    starts: int


@dataclass
class _Worker:
    """An agent whose work is a pause. It notes each start, with the user whose name is the prompt."""

    started: dict[str, float] = field(default_factory=dict[str, float])
    """Times of the starts by prompt, in their order."""
    starts: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])

    async def advance(self, turn: AgentTurn) -> StateChange:
        prompt = "".join(part.text for part in turn.session.messages[-1].parts if isinstance(part, Text))
        self.started[prompt] = time.perf_counter()
        if prompt in self.starts:
            self.starts[prompt].set()
        await turn.emit(StateChange(TaskState.WORKING))
        await asyncio.sleep(JOB_SECONDS)
        return StateChange(TaskState.COMPLETED)


async def take_turns(open_journal: OpenJournal, folder: Path, count: int) -> Turns:
    """Let one user queue many tasks while others always have one waiting, on two servers; watch ``count`` starts."""
    worker = _Worker()
    engines: list[Engine] = []
    waits: list[_Wait] = []
    try:
        for slots in SLOTS:
            options = EngineOptions(WorkspaceRule(default=folder), placement=Placement(slots=slots))
            engine = Engine(worker, await open_journal(), options)
            engines.append(engine)
            await engine.start()
        one = engines[0].for_user("one")
        await asyncio.gather(*(_prompt(one, f"one {number}") for number in range(QUEUED)))
        others = [
            asyncio.create_task(
                _other(engines[number % 2].for_user(f"other {number}"), f"other {number}", worker, waits)
            )
            for number in range(OTHERS)
        ]
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await _until(worker, len(worker.started) + 2 * OTHERS, others)  # each of the others waits now
                waits.clear()
                before = len(worker.started)
                await _until(worker, before + count, others)
        finally:
            for other in others:
                other.cancel()
            await asyncio.gather(*others, return_exceptions=True)
    finally:
        for engine in engines:
            await engine.aclose()
    watched = list(worker.started.items())[before : before + count]
    turn = (watched[-1][1] - watched[0][1]) / (len(watched) - 1) * (OTHERS + 1) * 1000
    share = sum(prompt.startswith("one ") for prompt, _ in watched) / len(watched)
    longest, most = max(wait.milliseconds for wait in waits), max(wait.starts for wait in waits)
    return Turns(share, max(0, most - OTHERS), max(0.0, longest - turn), turn)


async def _prompt(user: AgentClient, text: str) -> None:
    await user.prompt(PromptMessage(text))


async def _other(user: AgentClient, name: str, worker: _Worker, waits: list[_Wait]) -> None:
    """Queue a task as soon as the last one has started."""
    number = 0
    while True:
        number += 1
        prompt = f"{name} {number}"
        started = worker.starts[prompt] = asyncio.Event()
        queued = time.perf_counter()
        await _prompt(user, prompt)
        before = len(worker.started)
        await started.wait()
        place = list(worker.started).index(prompt)  # before what has started since the event
        waits.append(_Wait((worker.started[prompt] - queued) * 1000, max(0, place - before)))


async def _until(worker: _Worker, count: int, others: Sequence["asyncio.Task[None]"]) -> None:
    while len(worker.started) < count:
        for other in others:
            if other.done():
                other.result()
        await asyncio.sleep(JOB_SECONDS)
