"""Counts the model tokens and the costs of each user's day, from the events in the journal, and ends work at a limit.

While tasks work, what this process has seen of them since is added. The journal is asked again only if that might be
the maximum, or after a while, since the user's tasks may run in other servers, too.

Nothing is stored for it: after a restart, and in another server of the same journal, the events are counted again. What
was counted once is not read again, only the events since. Of removed tasks the journal keeps what they have used today.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from typing_extensions import override

from isthmus.agent.session.spending import BUDGET, TOKEN_QUOTA, Budget, SpendingRefusal
from isthmus.events import AgentEvent
from isthmus.journal.port.base import Journal
from isthmus.journal.port.day_limits import DayLimits, begins_again
from isthmus.journal.port.removed_tokens import Used, UsedToday, day_of, used_of
from isthmus.journal.port.task_rows import TaskRow

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
    since: Used = field(default_factory=Used)
    """Use by tasks of this process since the journal was asked, or a moment before."""
    read: dict[str, int] = field(default_factory=dict[str, int])
    """Numbers of the last events that were read, by task."""
    used: dict[str, Used] = field(default_factory=dict[str, Used])
    """Use by task."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def whole(self) -> Used:
        """All that was counted."""
        return sum(self.used.values(), Used())


class DayUse:
    """Use of models in the events of a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._days: dict[str, _UserDay] = {}

    async def today(self, user: str) -> UsedToday:
        """Return what all tasks and subagents of a user have used today. Raises JournalError."""
        day = self._days.setdefault(user, _UserDay())
        async with day.lock:
            now = self._journal.now()
            begun, day.since = day_of(now), Used()
            if day.begun != begun:
                day.begun, day.looked = begun, float(begun)
                day.read.clear()
                day.used.clear()
            for row in await self._changed(user, max(float(begun), day.looked - OVERLAP)):
                await self._count(day, row)
            # After the tasks: one that is removed meanwhile is counted by its row or by this, whichever is read.
            day.used |= await self._journal.removal.used(user, begun)
            day.looked = now
            whole = day.whole
            return UsedToday(whole.tokens, whole.cost, whole.unpriced, begun)

    def add(self, user: str, used: Used) -> None:
        """Add what a task of this process has used, and what the journal has or will have of it."""
        if (day := self._days.get(user)) is not None:
            day.since += used

    async def reached(self, user: str, limits: DayLimits) -> UsedToday | None:
        """Return what a user has used if a limit is reached, otherwise None. Raises JournalError."""
        day, now = self._days.get(user), self._journal.now()
        is_known = day is not None and day.begun == day_of(now) and now - day.looked < LOOK_SECONDS
        if day is not None and is_known and not limits.are_reached(day.whole + day.since):
            return None
        used = await self.today(user)
        return used if limits.are_reached(used) else None

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
                    day.used[row.task_id] = day.used.get(row.task_id, Used()) + used_of(delivery.event)
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


class DayBudget(Budget):
    """The budgets of days; ``limits_of`` returns the limits of a user, and ``setting`` names the one of costs."""

    def __init__(self, use: DayUse, limits_of: Callable[[str], DayLimits], setting: str = "") -> None:
        self._use = use
        self._limits_of = limits_of
        self._setting = f" ({setting})" if setting else ""

    @override
    def used(self, user: str, event: AgentEvent) -> None:
        self._use.add(user, used_of(event))

    @override
    async def refusal(self, user: str) -> SpendingRefusal | None:
        limits = self._limits_of(user)
        if limits == DayLimits() or (used := await self._use.reached(user, limits)) is None:
            return None
        is_of_tokens = DayLimits(limits.tokens).are_reached(used)
        text = (
            f"{limits.reached(user, used)}{'' if is_of_tokens else self._setting}; the work ended here, and what was"
            f" done is kept: send a message in this session from {begins_again(used)} on to continue"
        )
        return SpendingRefusal(text, TOKEN_QUOTA if is_of_tokens else BUDGET)

    @override
    def limits_money(self, user: str) -> bool:
        return self._limits_of(user).cost is not None
