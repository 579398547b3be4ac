"""Let the monotonic clock of a Python program begin where the run of the tests says; Python imports this at its start.

Each process begins anew, so that two never share an origin, which Python does not promise either.
Nothing is imported but what Python has loaded by then: programs must not start more slowly.
"""

import os
import time

ORIGIN = "TEST_CLOCK_ORIGIN"
"""Variable with the time in seconds at which the clocks begin."""


def begin() -> None:
    """Let ``time.monotonic`` and ``time.perf_counter`` of this process begin at :data:`ORIGIN`, unless they do so."""
    if ORIGIN not in os.environ or hasattr(time, ORIGIN):
        return
    origin = int(float(os.environ[ORIGIN]) * 1e9)
    for name in ("monotonic", "perf_counter"):
        _shift(name, origin)
    setattr(time, ORIGIN, origin)


def _shift(name: str, origin: int) -> None:
    real = getattr(time, f"{name}_ns")
    ahead = origin - real()

    def nanoseconds() -> int:
        return real() + ahead

    def seconds() -> float:
        return (real() + ahead) / 1e9

    setattr(time, f"{name}_ns", nanoseconds)
    setattr(time, name, seconds)


begin()
