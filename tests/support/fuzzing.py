"""Seeds and time limits of the fuzz tests in tests/fuzz.

Together they take FUZZ_SECONDS (12 by default, an hour in ``make fuzz``); each test takes a share. FUZZ_SEED
repeats a run: one seed makes the same cases in the same order; only their number depends on the machine.
"""

import os
import random
import time
from collections.abc import Iterator

SECONDS = float(os.environ.get("FUZZ_SECONDS", "12"))
"""Duration in seconds of all fuzz tests, one after the other."""
SEED = int(os.environ.get("FUZZ_SEED", str(random.SystemRandom().randrange(10**6))))
"""Seed of the whole run."""
TIMEOUT = SECONDS * 4 + 300
"""Time limit of one fuzz test in seconds, for ``@pytest.mark.timeout``: the last case ends late on a loaded machine."""


def seconds(share: float) -> float:
    """Return the seconds of a test that takes `share` (0 to 1) of the whole run."""
    return SECONDS * share


def cases(name: str, share: float, least: int = 1) -> Iterator[random.Random]:
    """Yield a random generator for each case of the test `name`, until its time is over.

    There are at least `least` cases. A failing test prints its case; a test prints the number of cases at its end.
    """
    chance = random.Random(f"{SEED} {name}")  # noqa: S311 - to be repeated
    end = time.monotonic() + seconds(share)
    count = 0
    finished = False
    try:
        while count < least or time.monotonic() < end:
            count += 1
            yield random.Random(chance.getrandbits(64))  # noqa: S311
        finished = True
    finally:
        print(f"{name}: {count} cases, FUZZ_SEED={SEED}{'' if finished else f', ended in case {count}'}")
