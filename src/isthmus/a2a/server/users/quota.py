"""Limits of a user in time: requests in a minute, and model tokens and costs in a day. Sans-I/O.

These are counted by :class:`isthmus.engine.users.day_use.DayUse`. A quota is looked at when a message comes,
and a message that is refused has changed nothing; and while a task works between two messages of the model, where its
work can end well.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from isthmus.client import LimitReached
from isthmus.journal.port.day_limits import DayLimits, begins_again
from isthmus.journal.port.removed_tokens import UsedToday
from isthmus.record import record

MINUTE = 60.0


CountUse: TypeAlias = Callable[[str], Awaitable[UsedToday]]
"""Function that returns what models used for all tasks and subagents of a user today.

It raises JournalError. The day begins by UTC.
"""


@record
class DayQuota:
    """Limits of one user's day."""

    user: str
    limits: DayLimits
    use: CountUse

    async def check(self) -> None:
        """Raise LimitReached if the user has used up one of them."""
        used = await self.use(self.user)
        if self.limits.are_reached(used):
            text = self.limits.reached(self.user, used)
            again = begins_again(used)
            raise LimitReached(f"{text}; nothing was changed: tasks wait, and messages are taken from {again} on")


@dataclass(slots=True)
class RequestRate:
    """Requests of one user: so many in a minute, which may come at once, and then evenly."""

    _left: float = 0.0
    _at: float | None = None

    def take(self, a_minute: int, now: float) -> float:
        """Count a request at monotonic time ``now`` and return 0, or return the seconds to wait and count nothing."""
        if self._at is None:
            self._left = float(a_minute)
        else:
            self._left = min(float(a_minute), self._left + (now - self._at) * a_minute / MINUTE)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) * MINUTE / a_minute
