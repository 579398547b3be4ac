"""Counts the model tokens that each user of a server has used today, from the events in the journal.

While tasks work, what this process has seen of them since is added. The journal is asked again only if that might be
the maximum, or after a while, since the user's tasks may run in other servers, too.

Nothing is stored for it: after a restart, and in another server of the same journal, the events are counted again. What
was counted once is not read again, only the events since. Of removed tasks the journal keeps what they have used today.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from typing_extensions import override

from isthmus.a2a.server.users.quota import UsedToday, again, spent
from isthmus.a2a.server.users.users import Caps, UserTable
from isthmus.agent.session.spending import TOKEN_QUOTA, Budget, Refusal
from isthmus.events import AgentEvent
from isthmus.journal.port.base import Journal
from isthmus.journal.port.removed_tokens import day_of, tokens_of
from isthmus.journal.port.task_rows import TaskRow

if TYPE_CHECKING:
    from isthmus.engine import Engine

FIRST_TASKS = 50
"""Number of tasks that are looked at first, last changed first; more follow while all of them changed today."""
MAXIMUM_TASKS = 100_000
PAGE = 500
"""Number of events that are read at a time."""
LOOK_SECONDS = 60.0
"""Maximum time in seconds for which other servers' tasks of a user are not looked at while one works here."""
OVERLAP = 60.0
"""Difference in seconds between the clocks of servers that write to one journal."""


@dataclass(slots=True)
class _UserDay:
    begun: int = 0
    looked: float = 0.0
    since: int = 0
    """Tokens that tasks of this process have used since the journal was asked, or a moment before."""
    read: dict[str, int] = field(default_factory=dict[str, int])
    """Numbers of the last events that were read, by task."""
    used: dict[str, int] = field(default_factory=dict[str, int])
    """Tokens by task."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def tokens(self) -> int:
        """All tokens that were counted."""
        return sum(self.used.values())


class JournalTokens:
    """Tokens in the events of a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._days: dict[str, _UserDay] = {}

    async def today(self, user: str) -> UsedToday:
        """Return the tokens that all tasks and subagents of a user have used today. Raises JournalError."""
        day = self._days.setdefault(user, _UserDay())
        async with day.lock:
            now = self._journal.now()
            begun, day.since = day_of(now), 0
            if day.begun != begun:
                day.begun, day.looked = begun, float(begun)
                day.read.clear()
                day.used.clear()
            for row in await self._changed(user, max(float(begun), day.looked - OVERLAP)):
                await self._count(day, row)
            # After the tasks: one that is removed meanwhile is counted by its row or by this, whichever is read.
            day.used |= await self._journal.removal.used(user, begun)
            day.looked = now
            return UsedToday(day.tokens, begun)

    def add(self, user: str, tokens: int) -> None:
        """Add tokens that a task of this process has used, and that the journal has or will have."""
        if tokens and (day := self._days.get(user)) is not None:
            day.since += tokens

    async def reached(self, user: str, maximum: int) -> UsedToday | None:
        """Return the tokens of a user if they are the maximum or more, otherwise None. Raises JournalError."""
        day, now = self._days.get(user), self._journal.now()
        is_known = day is not None and day.begun == day_of(now) and now - day.looked < LOOK_SECONDS
        if day is not None and is_known and day.tokens + day.since < maximum:
            return None
        used = await self.today(user)
        return used if used.tokens >= maximum else None

    async def _changed(self, user: str, since: float) -> list[TaskRow]:
        """Return the tasks of a user and of subagents that changed since a Unix time."""
        limit = FIRST_TASKS
        while True:
            rows = await self._journal.tasks(limit, user=user)
            if len(rows) < limit or rows[-1].updated_at < since or limit >= MAXIMUM_TASKS:
                return [row for row in rows if row.updated_at >= since]
            limit *= 10

    async def _count(self, day: _UserDay, row: TaskRow) -> None:
        after = day.read.get(row.task_id)
        if after is None:
            after = 0 if row.created_at >= day.begun else await self._last_before(row, day.begun)
        while after < row.seq:
            events = await self._journal.events(row.task_id, after, PAGE)
            if not events:
                break  # the task is being removed
            for delivery in events:
                after = delivery.seq or after
                if delivery.at >= day.begun:
                    day.used[row.task_id] = day.used.get(row.task_id, 0) + tokens_of(delivery.event)
            day.read[row.task_id] = after

    async def _last_before(self, row: TaskRow, begun: float) -> int:
        """Return the number of the last event of a task before a Unix time, without reading the ones before it."""
        low, high = 0, row.seq
        while low < high:
            middle = (low + high) // 2
            events = await self._journal.events(row.task_id, middle, 1)
            if events and events[0].at < begun:
                low = middle + 1
            else:
                high = middle
        return low


class TokenBudget(Budget):
    """The tokens that are left to users; ``maximum_of`` returns the maximum of a user in a day, None for no limit."""

    def __init__(self, tokens: JournalTokens, maximum_of: Callable[[str], int | None]) -> None:
        self._tokens = tokens
        self._maximum_of = maximum_of

    @override
    def used(self, user: str, event: AgentEvent) -> None:
        self._tokens.add(user, tokens_of(event))

    @override
    async def refusal(self, user: str) -> Refusal | None:
        maximum = self._maximum_of(user)
        if maximum is None or (used := await self._tokens.reached(user, maximum)) is None:
            return None
        text = (
            f"{spent(user, used, maximum)}; the work ended here, and what was done is kept: send a message in"
            f" this session from {again(used)} on to continue"
        )
        return Refusal(text, TOKEN_QUOTA)

    @override
    def limits_money(self, user: str) -> bool:
        del user
        return False


def counted_tokens(engine: "Engine", caps: Caps, users: Callable[[], UserTable] | None) -> JournalTokens:
    """Return the count of the model tokens of an engine's users, which from now on ends their tasks, too.

    ``caps`` are the limits of users for whom the table of ``users`` has none. The owner has none.
    """

    def maximum_of(user: str) -> int | None:
        known = UserTable() if users is None else users()
        return known.tokens_a_day(user, time.time(), caps) if user else None

    tokens = JournalTokens(engine.journal)
    engine.spending.budgets.append(TokenBudget(tokens, maximum_of))
    return tokens
