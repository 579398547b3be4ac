"""Servers that share a PostgreSQL: growth, cost, followers, queue and take-over, beside a2a-sdk's cluster.

PostgreSQL writes to its disk as in production (fsync). What several servers do is measured with `isthmus serve` and a
scripted model, without tools and files.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cluster.cost import cost
from bench.cluster.following import delays
from bench.cluster.replicas import disk_of, isthmus_serve, sdk_name, sdk_serve
from bench.figures import Figure, at_most, beside, percentile
from bench.processes import ROOT, clean_home

if TYPE_CHECKING:
    from support.postgres import Postgres

FOLLOWED_MILLISECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Extent:
    """Amounts of what is measured; times in seconds."""

    rounds: int
    seconds: float
    """Time of each load."""
    cost_seconds: float
    streams: int
    words: int
    waiting: int
    takes: int
    starts: int
    kills: int
    sdk_seconds: float
    """Time that the peer has to go on with a task of a killed process."""


FULL = Extent(3, 4.0, 2.0, 3, 100, 10_000, 200, 440, 10, 10.0)
QUICK = Extent(1, 2.0, 0.7, 2, 40, 10_000, 50, 154, 2, 2.0)


def run(rounds: int | None) -> list[Figure]:
    """Run interleaved rounds and return medians."""
    return _run(FULL if rounds is None else replace(FULL, rounds=rounds))


def run_quick() -> list[Figure]:
    """Run one round with short measurements, in about a minute."""
    return _run(QUICK)


def _run(extent: Extent) -> list[Figure]:
    # PostgreSQL is started from this process.
    sys.path += [str(ROOT / "tests"), str(ROOT / "scripts")]
    from support.postgres import postgres

    with clean_home() as environment, postgres(is_durable=True) as database:
        version = database.sql("SHOW server_version").split()[0]
        print(f"  PostgreSQL {version}, fsync {database.sql('SHOW fsync')}, on {disk_of(database.folder)}", flush=True)
        sdk = sdk_name()
        if not sdk:
            print("  a2a-sdk 1.3 with asyncpg is not installed; `make peers` installs it.", flush=True)
        return list(_measure(environment, database, sdk, extent))


def _measure(environment: Mapping[str, str], database: "Postgres", sdk: str, extent: Extent) -> Iterator[Figure]:
    from bench.cluster.fair_queue import fair_queue
    from bench.cluster.scale import scale
    from bench.cluster.take_over import take_overs

    yield from scale(environment, database, sdk, extent.rounds, extent.seconds)
    yield from cost(environment, database, extent.rounds, extent.cost_seconds)
    yield from _followers(environment, database, sdk, extent)
    folder = Path(environment["PWD"])
    yield from fair_queue(database, folder, extent.waiting, extent.takes, extent.starts)
    yield from take_overs(environment, database, sdk, extent.kills, extent.sdk_seconds)


def _followers(environment: Mapping[str, str], database: "Postgres", sdk: str, extent: Extent) -> Iterator[Figure]:
    ours = _delays(environment, database, extent, is_ours=True)
    theirs = _delays(environment, database, extent, is_ours=False) if sdk else []
    for part in (50, 95):
        name, value = f"an event at another server, later by, p{part}", percentile(ours, part)
        if part == 95:
            yield at_most(name, value, "ms", FOLLOWED_MILLISECONDS)
        if theirs:
            yield beside(name, value, "ms", sdk, percentile(theirs, part))
        elif part == 50:
            yield Figure(name, value, "ms")


def _delays(environment: Mapping[str, str], database: "Postgres", extent: Extent, *, is_ours: bool) -> list[float]:
    start = isthmus_serve if is_ours else sdk_serve
    url = database.database()
    with ExitStack() as stack:
        here, there = (stack.enter_context(start(environment, name, url)) for name in ("here", "there"))
        found = delays(here, there, extent.streams, extent.words)
    if len(found) < extent.words * extent.streams // 2:
        raise RuntimeError(f"expected the words of {extent.streams} tasks at both followers, received {len(found)}")
    return found
