import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.clock import sitecustomize

FOLDER = Path(sitecustomize.__file__).parent
SHOWN = """
import asyncio, time
loop = asyncio.new_event_loop()
print(time.monotonic(), time.monotonic_ns() / 1e9, time.perf_counter(), loop.time())
loop.close()
"""


def times_of(**environment: str) -> list[float]:
    """Return what the clocks of a Python program show that has just been started."""
    command = [sys.executable, "-c", SHOWN]
    # No other sitecustomize may come first.
    variables = {**os.environ, "PYTHONPATH": str(FOLDER), **environment}
    found = subprocess.run(command, env=variables, capture_output=True, check=True, text=True)
    return [float(time) for time in found.stdout.split()]


@pytest.mark.parametrize("origin", [5, 10 * 365 * 86400])
def test_clocks_of_a_program_begin_where_the_run_says(origin: int) -> None:
    times = times_of(**{sitecustomize.ORIGIN: str(origin)})
    assert all(0 <= time - origin < 60 for time in times)


def test_without_a_choice_the_clock_is_that_of_the_machine() -> None:
    environment = {name: value for name, value in os.environ.items() if name != sitecustomize.ORIGIN}
    command = [sys.executable, "-c", f"import time; print(hasattr(time, {sitecustomize.ORIGIN!r}))"]
    variables = environment | {"PYTHONPATH": str(FOLDER)}
    assert subprocess.run(command, env=variables, capture_output=True, check=True).stdout == b"False\n"
