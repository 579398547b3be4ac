"""A load that never lets a server rest: clients that begin the next trivial task as soon as the last one has ended."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.cluster.replicas import TRIVIAL, Replica, database_cpu
from bench.load import Connection

if TYPE_CHECKING:
    from support.postgres import Postgres

_COMPLETED = b'"completed"'


@dataclass(frozen=True, slots=True)
class Pressed:
    """Trivial tasks under load. CPU in milliseconds per task; shares of one core."""

    tasks: float
    """Number of tasks, those that were begun or ended outside the time by their part in it."""
    rate: float
    """Tasks per second."""
    cpu: float
    database_cpu: float
    busy: float
    """Processor time of all replicas per second."""
    load_share: float
    """The load generator's part of a core."""

    def share_of(self, quota: float) -> float:
        """Return the part of their quotas, together ``quota`` cores, that the replicas used."""
        return self.busy / quota


def press(
    replicas: Sequence[Replica], clients: int, seconds: float, warm_up: float, database: "Postgres | None" = None
) -> Pressed:
    """Put ``clients`` clients on each replica, and measure for a time after the warm-up, in seconds.

    Raises:
        RuntimeError: a task did not complete.
    """
    return asyncio.run(_press(replicas, clients, seconds, warm_up, database))


def warm(replica: Replica, clients: int, tasks: int) -> None:
    """Run the first tasks of a replica, in which it imports what it needs.

    Raises:
        RuntimeError: a task did not complete.
    """

    async def work(left: Iterator[int]) -> None:
        async with replica.connect() as connection:
            for _ in left:
                await _task(connection, replica)

    async def begin() -> None:
        left = iter(range(tasks))
        await asyncio.gather(*(work(left) for _ in range(clients)))

    asyncio.run(begin())


async def _task(connection: Connection, replica: Replica) -> None:
    answer = await connection.post(replica.request(TRIVIAL))
    if answer.status != 200 or _COMPLETED not in answer.body:
        raise RuntimeError(f"expected a completed task of {replica.name}: {answer.body[-500:]!r}")


async def _press(
    replicas: Sequence[Replica], clients: int, seconds: float, warm_up: float, database: "Postgres | None"
) -> Pressed:
    spans: list[tuple[float, float]] = []
    has_ended = False

    async def work(replica: Replica) -> None:
        async with replica.connect() as connection:
            while not has_ended:
                begun = time.monotonic()
                await _task(connection, replica)
                spans.append((begun, time.monotonic()))

    def read() -> tuple[float, float, float, float]:
        stored = 0.0 if database is None else database_cpu(database)
        return time.monotonic(), sum(replica.cpu() for replica in replicas), stored, time.process_time()

    working = [asyncio.create_task(work(replica)) for replica in replicas for _ in range(clients)]
    ended = asyncio.create_task(asyncio.wait(working, return_when=asyncio.FIRST_EXCEPTION))
    try:
        await asyncio.wait([ended], timeout=warm_up)
        before = read()
        await asyncio.wait([ended], timeout=seconds)
        after = read()
        has_ended = True
        await asyncio.gather(*working)
    finally:
        for one in working:
            one.cancel()
    wall, cpu, stored, own = (late - early for early, late in zip(before, after, strict=True))
    tasks = tasks_within(spans, before[0], after[0])
    if not tasks:
        raise RuntimeError(f"no task of {replicas[0].name} ran to its end in {seconds:g} s")
    return Pressed(tasks, tasks / wall, cpu * 1000 / tasks, stored * 1000 / tasks, cpu / wall, own / wall)


def tasks_within(spans: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    """Return the number of tasks in a time, each by the part of its own span that lies in it.

    Tasks of a server end in batches, as many at once as there are clients. To count ends would count a batch more or
    less: with 60 tasks of 6 clients in 4 seconds, a time that began 0.3 seconds later had up to 12 % more or fewer.
    """
    return sum(max(0.0, min(late, end) - max(early, begin)) / (late - early) for early, late in spans)
