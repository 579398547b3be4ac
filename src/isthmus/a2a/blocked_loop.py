"""Log which function blocks the event loop, and with it every user of a hosted agent.

A thread checks once a second that the loop still runs, so that events cost nothing extra. Unlike the watchdog of the
program (``isthmus.programs.process.watchdog``) it ends nothing, and also sees functions that block without using the
processor.
"""

import asyncio
import contextlib
import logging
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType

from isthmus.listeners.logs import Occurrence

PERIOD_SECONDS = 1.0
"""Interval in seconds at which the loop is checked."""
BLOCKED_SECONDS = 2.0
"""Time in seconds after which a loop that does not answer counts as blocked."""
SHOWN_CALLS = 6
"""Maximum number of calls of a stack that the log shows, the innermost ones."""

log = logging.getLogger(__name__)


@contextlib.contextmanager
def warn_when_blocked(below: CodeType) -> Generator[None]:
    """Log a warning while the running loop is blocked, at most once a minute for each function.

    ``below`` is the function that calls the code of the agent's author. If it is in the stack, the warning names the
    function that it called, otherwise the innermost one.
    """
    watch = _Watch(asyncio.get_running_loop(), threading.get_ident(), below)
    thread = threading.Thread(target=watch.run, name="isthmus-blocked-loop", daemon=True)
    thread.start()
    try:
        yield
    finally:
        watch.stopped.set()


class _Watch:
    def __init__(self, loop: asyncio.AbstractEventLoop, thread_id: int, below: CodeType) -> None:
        self.stopped = threading.Event()
        self._loop = loop
        self._thread_id = thread_id
        self._below = below
        self._seen: dict[CodeType, Occurrence] = {}

    def run(self) -> None:
        while not self.stopped.wait(PERIOD_SECONDS):
            alive = threading.Event()
            try:
                self._loop.call_soon_threadsafe(alive.set)
            except RuntimeError:  # the loop is closed
                return
            # Check twice: a process that was stopped (SIGSTOP) resumes late, and its loop with it.
            if not alive.wait(BLOCKED_SECONDS) and not alive.wait(BLOCKED_SECONDS / 10):
                self._warn()
                while not alive.wait(PERIOD_SECONDS) and not self.stopped.is_set():
                    pass

    def _warn(self) -> None:
        stack = _stack(sys._current_frames().get(self._thread_id))  # pyright: ignore[reportPrivateUsage] - the documented way
        below = next((at for at, frame in enumerate(stack) if frame.f_code is self._below), None)
        calls = stack[below + 1 :] if below is not None else stack[-SHOWN_CALLS:]
        if not calls:
            return
        code = (calls[0] if below is not None else calls[-1]).f_code
        if code not in self._seen:
            text = (
                f"{code.co_qualname}() in {code.co_filename} blocks the event loop, so no user is served. Run blocking"
                " code with `await asyncio.to_thread(...)`. It is at "
            )
            self._seen[code] = Occurrence(log, text)
        self._seen[code].note(" > ".join(_place(frame) for frame in calls[-SHOWN_CALLS:]))


def _stack(frame: FrameType | None) -> list[FrameType]:
    """Return the frames of a stack, the outermost call first."""
    found: list[FrameType] = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found[::-1]


def _place(frame: FrameType) -> str:
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
