"""The processor time that work takes on this machine, at this moment: limits in seconds are those of another machine.

Not for ratios of two measurements, which need no machine to compare with: see ``bench/``.
"""

import time

_ROUNDS = 1_000_000
_SECONDS = 0.05
"""Processor time of `_ROUNDS` rounds where the limits of the tests were chosen."""


def seconds_here(seconds: float) -> float:
    """Return the limit here, in seconds of processor time, for what may take `seconds` where limits were chosen.

    It is never lower than that. Ask for it next to the measurement: a machine is slower while it does other work.
    """
    began, total = time.thread_time(), 0
    for number in range(_ROUNDS):
        total += number
    return seconds * max(1.0, (time.thread_time() - began) / _SECONDS)
