"""Notices that the computer slept while an answer was awaited.

The connection of before is then usually dead, without a word from the other side: the answer would be awaited until
the deadline for silence. What still comes after the sleep is taken.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from isthmus.models.port.base import ModelError, ModelErrorKind
from isthmus.record import record


@record
class SleepLimits:
    """Times in seconds: between two looks at the clocks, their least difference after a sleep, and of grace then."""

    look: float = 5.0
    difference: float = 30.0
    grace: float = 5.0


class SleepWatch:
    """Watches the clocks while its block runs. ``now`` goes on while the computer sleeps, ``monotonic`` stops.

    The block says when it begins to wait for the server, and when something came. Its end raises a ModelError
    (INTERRUPTED) if the computer slept in one of these waits and nothing came in the time of grace.
    """

    def __init__(self, now: Callable[[], float], monotonic: Callable[[], float], limits: SleepLimits) -> None:
        self._now = now
        self._monotonic = monotonic
        self._limits = limits
        self._ahead = self._difference()
        self._waiting: asyncio.Task[object] | None = None
        """The task that waits for the server, while it does."""
        self._received = 0
        self._ended: tuple[asyncio.Task[object], int] | None = None
        """The task whose wait was ended, with its number of cancellations before."""
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self._timer = asyncio.get_running_loop().call_later(self._limits.look, self._look)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting = None
        if self._timer is not None:
            self._timer.cancel()
        if self._ended is None:
            return
        (task, before), self._ended = self._ended, None
        if task.uncancel() <= before and isinstance(error, asyncio.CancelledError):
            text = "the computer slept while the answer was awaited"
            raise ModelError(ModelErrorKind.INTERRUPTED, text) from error

    def wait(self) -> None:
        """Note that this task is about to wait for the server."""
        self._waiting = asyncio.current_task()

    def received(self) -> None:
        """Note that something came."""
        self._waiting = None
        self._received += 1

    def _difference(self) -> float:
        return self._now() - self._monotonic()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        before, self._ahead = self._ahead, self._difference()
        if self._ahead - before >= self._limits.difference and self._waiting is not None:
            self._timer = loop.call_later(self._limits.grace, self._end_wait, self._received)
        else:
            self._timer = loop.call_later(self._limits.look, self._look)

    def _end_wait(self, received: int) -> None:
        if self._waiting is None or self._received != received:
            self._timer = asyncio.get_running_loop().call_later(self._limits.look, self._look)
            return
        self._ended = self._waiting, self._waiting.cancelling()
        self._waiting.cancel()
