"""Isthmus on a machine whose clock somebody sets: the ``program`` of a copy of :class:`loaded_program.LoadedProgram`.

The environment variable :data:`CLOCK` names a file whose text is the number of seconds by which ``time.time`` is
ahead. The monotonic clock goes on as it does when a real clock is set.
"""

import os
import time
from pathlib import Path

SET_CLOCK = "support.set_clock_program"
CLOCK = "TEST_CLOCK_FILE"


def main() -> int | None:
    """Run Isthmus with the clock of the file."""
    file, real = Path(os.environ[CLOCK]), time.time_ns

    def now() -> int:
        return real() + int(float(file.read_text("ascii") or "0") * 1e9)

    time.time_ns = now
    time.time = lambda: now() / 1e9

    from isthmus.__main__ import main as isthmus

    return isthmus()
