"""Monotonic clocks that begin where the run says, in the process of the tests and in the Python programs they start.

The monotonic clock of most systems begins when the machine starts, so code that takes 0 for "long ago" is wrong on a
machine that has just been started. With the environment variable :data:`CHOSEN` a run begins at that many seconds.
"""

import os
from pathlib import Path

from support.clock import sitecustomize

CHOSEN = "ISTHMUS_CLOCK_ORIGIN"
"""Variable of the run; the tests do not see it."""


def begin() -> str:
    """Move the clocks of this process and of the Python programs that it starts; return what the run says of it."""
    origin = os.environ.get(CHOSEN)
    if not origin:
        return "clock: that of the machine"
    os.environ[sitecustomize.ORIGIN] = origin
    folder = str(Path(sitecustomize.__file__).parent)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, paths)])
    sitecustomize.begin()
    return f"clock: begins at {origin} s in each Python process ({CHOSEN})"
