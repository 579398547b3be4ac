"""Notices that the computer slept while an answer was awaited.

The connection of before is then usually dead, without a word from the other side: the answer would be awaited until
the deadline for silence. What still comes after the sleep is taken.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from isthmus.models.base import ModelError, ModelErrorKind
from isthmus.record import record

T = TypeVar("T")


@record
class SleepLimits:
    """Times in seconds: between two looks at the clocks, their least difference after a sleep, and of grace then."""

    look: float = 5.0
    difference: float = 30.0
    grace: float = 5.0


class SleepWatch:
    """Watches the clocks while its block runs. ``now`` goes on while the computer sleeps, ``monotonic`` stops."""

    def __init__(self, now: Callable[[], float], monotonic: Callable[[], float], limits: SleepLimits) -> None:
        self._now = now
        self._monotonic = monotonic
        self._limits = limits
        self._ahead = self._difference()
        self._scope: asyncio.Timeout | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self._timer = asyncio.get_running_loop().call_later(self._limits.look, self._look)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def awaited(self, work: Awaitable[T]) -> T:
        """Return the result of something that is awaited from the server.

        Raises:
            ModelError: INTERRUPTED - the computer slept, and nothing came in the time of grace.
        """
        try:
            async with asyncio.timeout(None) as self._scope:
                return await work
        except TimeoutError as error:
            if self._scope is None or not self._scope.expired():
                raise
            text = "the computer slept while the answer was awaited"
            raise ModelError(ModelErrorKind.INTERRUPTED, text) from error
        finally:
            self._scope = None

    def _difference(self) -> float:
        return self._now() - self._monotonic()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        before, self._ahead = self._ahead, self._difference()
        if self._ahead - before >= self._limits.difference and self._scope is not None:
            self._scope.reschedule(loop.time() + self._limits.grace)
        self._timer = loop.call_later(self._limits.look, self._look)
