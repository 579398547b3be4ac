"""Kills the agent's process at every named point and at random events, and looks for what was lost or done twice.

``make chaos`` plays many stories; CHAOS_KILLS and CHAOS_SEED say how many kills at least, and repeat a run.
"""

import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from chaos.program import POINTS
from chaos.story import Death, Story
from chaos.truth import check

pytestmark = pytest.mark.anyio

KILLS = int(os.environ.get("CHAOS_KILLS", "4"))
SEED = int(os.environ.get("CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
PATIENCE = 1800 if "CHAOS_KILLS" in os.environ else 300
"""Seconds of a test, which takes a fraction of it where nothing else runs."""
LIVES = 6 if "CHAOS_KILLS" in os.environ else 4
"""Kills of one story at the most."""
TASKS_AT_A_POINT = 2
"""Tasks of a story about one point: one of them gets a second message while it works."""
ATTEMPTS = 5
"""Stories until a point is reached: a message reaches a task while it works, or just after, as it happens."""


@pytest.mark.timeout(PATIENCE)
@pytest.mark.parametrize("step", dict.fromkeys(point.rpartition(" ")[0] for point in POINTS if "effect" not in point))
async def test_nothing_is_lost_or_done_twice_when_the_process_dies_around_a_write(tmp_path: Path, step: str) -> None:
    # To be taken over, a task must have been left working.
    before = [Death("executing committed")] if step == "take-over" else []
    await die_at_each([point for point in POINTS if point.rpartition(" ")[0] == step], before, tmp_path)


@pytest.mark.timeout(PATIENCE)
async def test_nothing_is_lost_or_done_twice_when_the_process_dies_around_an_effect(tmp_path: Path) -> None:
    await die_at_each([point for point in POINTS if "effect" in point], [], tmp_path)


async def die_at_each(points: Sequence[str], before: Sequence[Death], folder: Path) -> None:
    """Let the process die once at each of the points, in as few stories as it takes."""
    for attempt in range(ATTEMPTS):
        deaths = [*before, *(Death(point) for point in points)]
        story = Story(folder / str(attempt), deaths, POINTS.index(points[0]) + attempt, TASKS_AT_A_POINT)
        await told(story)
        points = [point for point in points if not story.kills[point]]
        if not points:
            return
    raise AssertionError(f"{', '.join(points)} were not reached in {ATTEMPTS} stories")


@pytest.mark.timeout(PATIENCE)
async def test_nothing_is_lost_or_done_twice_when_the_process_dies_at_any_moment(tmp_path: Path) -> None:
    print(f"CHAOS_SEED={SEED} CHAOS_KILLS={KILLS}")
    chance = random.Random(SEED)  # noqa: S311 - to be repeated
    kills: Counter[str] = Counter()
    story_number = late = 0
    began = time.monotonic()
    while kills.total() < KILLS:
        deaths = [any_death(chance) for _ in range(LIVES)]
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            story = Story(Path(folder) / "story", deaths, chance.randrange(10**6))
            try:
                await told(story)
            except AssertionError as error:
                raise AssertionError(f"{error}\nCHAOS_SEED={SEED}, story {story_number}: {deaths}") from error
        kills += story.kills
        late += story.told_late
        story_number += 1
    print(f"{kills.total()} kills in {story_number} stories, {time.monotonic() - began:.0f} s: {dict(kills)}")
    assert late > 0, "no client ever came second"


def any_death(chance: random.Random) -> Death:
    if chance.random() < 0.5:
        return Death(seen=chance.randrange(1, 40))
    return Death(chance.choice(POINTS), chance.randrange(1, 6))


async def told(story: Story) -> None:
    try:
        await story.play()
    except TimeoutError as error:
        state = [(task.number, task.state, task.at, task.waiting) for task in story.tasks.values()]
        raise AssertionError(f"the story does not end: {state}\n{story.log()}") from error
    await check(story)
