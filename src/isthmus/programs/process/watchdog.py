"""Ends a program whose event loop hangs, with the stacks of its threads on stderr, so that it can be restarted.

A loop that hangs, for example in a regular expression, holds Python's lock: no signal handler in Python runs, and
SIGTERM has no effect. The handler here is in C. It measures processor time, not elapsed time: a program that waits,
or was stopped for hours, does not hang. Child processes do not inherit the timer.
"""

import asyncio
import contextlib
import faulthandler
import io
import signal
import sys
import threading
from collections.abc import Generator

HANG_SECONDS = 60.0
"""Maximum processor time in seconds of all threads together between two turns of the event loop."""
_TURNS = 60
"""Number of times the loop re-arms the timer in that time: threads may use several processors at once."""


@contextlib.contextmanager
def ends_when_hung(loop: asyncio.AbstractEventLoop, seconds: float = HANG_SECONDS) -> Generator[None]:
    """End the process (SIGVTALRM) when the loop has no turn within `seconds` of processor time of this process."""
    if threading.current_thread() is not threading.main_thread() or not _writes_stacks():
        yield
        return
    turn: asyncio.TimerHandle | None = None

    def arm() -> None:
        nonlocal turn
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        turn = loop.call_later(seconds / _TURNS, arm)

    arm()
    try:
        yield
    finally:
        if turn is not None:
            turn.cancel()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        faulthandler.unregister(signal.SIGVTALRM)


def _writes_stacks() -> bool:
    """Let SIGVTALRM write the stacks before its default action; return False if there is no stderr."""
    try:
        faulthandler.register(signal.SIGVTALRM, file=sys.stderr, all_threads=True, chain=True)
    except (AttributeError, RuntimeError, OSError, io.UnsupportedOperation):
        return False
    return True
