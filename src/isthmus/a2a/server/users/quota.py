"""Limits of a user in time: requests in a minute, and model tokens in a day. Sans-I/O.

Tokens are counted by :class:`isthmus.a2a.serving.token_use.JournalTokens`. A quota is looked at when a message comes,
and a message that is refused has changed nothing; and while a task works between two messages of the model, where its
work can end well.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from isthmus.client import LimitReached
from isthmus.journal.port.removed_tokens import DAY
from isthmus.record import record

MINUTE = 60.0


@record
class UsedToday:
    """Number of tokens on the day that began at ``begun``, in Unix seconds."""

    tokens: int
    begun: int


CountTokens: TypeAlias = Callable[[str], Awaitable[UsedToday]]
"""Function that returns the model tokens, input and output, that all tasks and subagents of a user have used today.

It raises JournalError. The day begins by UTC.
"""


@record
class TokenQuota:
    """Maximum number of model tokens of one user in a day."""

    user: str
    maximum: int
    use: CountTokens

    async def check(self) -> None:
        """Raise LimitReached if the user has no tokens left."""
        used = await self.use(self.user)
        if used.tokens >= self.maximum:
            text = spent(self.user, used, self.maximum)
            raise LimitReached(f"{text}; nothing was changed: tasks wait, and messages are taken from {again(used)} on")


def spent(user: str, used: UsedToday, maximum: int) -> str:
    """Return the sentence, without its end, that a user has no tokens left."""
    return f"{user} has used {used.tokens:,} model tokens today, and {maximum:,} are the maximum of a day"


def again(used: UsedToday) -> str:
    """Return the time from which there are tokens again, as ISO 8601."""
    return datetime.fromtimestamp(used.begun + DAY, UTC).isoformat(timespec="minutes")


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
