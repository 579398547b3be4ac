"""Kills the agent's process at every named point and at random events; nothing may be lost or done twice.

``make chaos`` makes many runs; CHAOS_KILLS is the minimum number of kills, and CHAOS_SEED repeats a run.
"""

import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from chaos.crash_run import CrashRun, PlannedKill
from chaos.program import POINTS
from chaos.run_checks import check
from support.extended import first_of
from support.journals import KINDS as ALL_KINDS
from support.postgres import Postgres, postgres

pytestmark = pytest.mark.anyio

KILLS = int(os.environ.get("CHAOS_KILLS", "4"))
SEED = int(os.environ.get("CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
PATIENCE = 1800 if "CHAOS_KILLS" in os.environ else 300
"""Time limit of a test in seconds; on a quiet machine it takes a fraction of it."""
KINDS = ALL_KINDS if "CHAOS_KILLS" in os.environ else ("sqlite",)
"""Kinds of journals that the process is killed with around each write."""
KILLS_PER_RUN = 6 if "CHAOS_KILLS" in os.environ else 4
"""Maximum number of kills in one run."""
TASKS_AT_A_POINT = 2
"""Number of tasks in a run for one point: one of them gets a second message while it works."""
ATTEMPTS = 5
"""Maximum number of runs to reach a point: a message reaches a task while it works, or just after, by chance."""


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres(is_durable=True) as found:
        yield found


@pytest.mark.timeout(PATIENCE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", dict.fromkeys(point.rpartition(" ")[0] for point in POINTS if "effect" not in point))
async def test_nothing_is_lost_or_done_twice_when_the_process_dies_around_a_write(
    tmp_path: Path, step: str, kind: str, database: Postgres
) -> None:
    # A task can be taken over only if its process was killed while it worked.
    before = [PlannedKill("executing committed")] if step == "take-over" else []
    points = [point for point in POINTS if point.rpartition(" ")[0] == step]
    await kill_at_each(points, before, tmp_path, database if kind == "postgres" else None)


@pytest.mark.timeout(PATIENCE)
async def test_nothing_is_lost_or_done_twice_when_the_process_dies_around_an_effect(tmp_path: Path) -> None:
    await kill_at_each([point for point in POINTS if "effect" in point], [], tmp_path, None)


async def kill_at_each(
    points: Sequence[str], before: Sequence[PlannedKill], folder: Path, database: Postgres | None
) -> None:
    """Kill the process once at each of the points, in as few runs as possible."""
    for attempt in range(ATTEMPTS):
        planned_kills = [*before, *(PlannedKill(point) for point in points)]
        seed, journal = POINTS.index(points[0]) + attempt, "" if database is None else database.database()
        run = CrashRun(folder / str(attempt), planned_kills, seed, TASKS_AT_A_POINT, journal=journal)
        await play_and_check(run)
        points = [point for point in points if not run.kills[point]]
        if not points:
            return
    raise AssertionError(f"{', '.join(points)} were not reached in {ATTEMPTS} runs")


@pytest.mark.timeout(PATIENCE)
@pytest.mark.parametrize("kind", first_of(ALL_KINDS))
async def test_nothing_is_lost_or_done_twice_when_the_process_dies_at_any_moment(
    tmp_path: Path, kind: str, database: Postgres
) -> None:
    print(f"CHAOS_SEED={SEED} CHAOS_KILLS={KILLS}")
    chance = random.Random(SEED)  # noqa: S311 - to be repeated
    kills: Counter[str] = Counter()
    run_number = late = 0
    began = time.monotonic()
    while kills.total() < KILLS:
        planned_kills = [any_kill(chance) for _ in range(KILLS_PER_RUN)]
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            journal = database.database() if kind == "postgres" else ""
            run = CrashRun(Path(folder) / "run", planned_kills, chance.randrange(10**6), journal=journal)
            try:
                await play_and_check(run)
            except AssertionError as error:
                raise AssertionError(f"{error}\nCHAOS_SEED={SEED}, run {run_number}: {planned_kills}") from error
        kills += run.kills
        late += run.late_answers
        run_number += 1
    print(f"{kills.total()} kills in {run_number} runs, {time.monotonic() - began:.0f} s: {dict(kills)}")
    assert late > 0, "no answer ever came second"


def any_kill(chance: random.Random) -> PlannedKill:
    if chance.random() < 0.5:
        return PlannedKill(seen=chance.randrange(1, 40))
    return PlannedKill(chance.choice(POINTS), chance.randrange(1, 6))


async def play_and_check(run: CrashRun) -> None:
    try:
        await run.play()
    except TimeoutError as error:
        state = [(task.number, task.state, task.at, task.waiting) for task in run.tasks.values()]
        raise AssertionError(f"the run does not end: {state}\n{run.log()}") from error
    await check(run)
