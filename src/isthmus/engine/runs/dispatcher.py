"""Takes the tasks that wait for a process, as this one has free slots, and those that other processes have left behind.

A task that meets a free slot starts at once, without the queue. Not here: the order in which tasks leave the queue, see
:mod:`isthmus.journal.port.queue`.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from isthmus.engine.port.options import EngineOptions
from isthmus.engine.runs.slots import Slots
from isthmus.engine.runs.take_over_rule import TakeOverRule
from isthmus.journal.port.base import Journal, JournalUnavailable
from isthmus.journal.port.queue import QueueScope
from isthmus.journal.port.task_rows import ClaimedTask, TaskRow

CHILDREN = 100
"""Maximum number of abandoned tasks of subagents that are looked at in one step."""
LOOK_SECONDS = 1.0
"""Interval in seconds at which a process with free slots looks into a queue of which it hears no news.

So it does while tasks wait for others of their users to end, which may happen in another process.
"""

log = logging.getLogger(__name__)


def scope_of(options: EngineOptions) -> QueueScope:
    """Return the tasks that a process with these options takes; without ``takes_over`` those reserved for it."""
    labels, roots = ("", *options.placement.labels), tuple(options.workspaces.resolved_roots)
    return QueueScope(labels, roots, is_reserved=not options.takes_over)


class Dispatcher:
    """The part of one process in handing out tasks.

    ``begin`` runs a task that was taken; ``resume_child`` looks after an abandoned task of a subagent. ``renew`` renews
    this process's leases if that is due, so that it never takes its own tasks. Leases last ``lease_seconds``; ``rule``
    says whose tasks are taken over.
    """

    def __init__(
        self,
        journal: Journal,
        owner: str,
        scope: QueueScope,
        slots: Slots,
        lease_seconds: float,
        rule: TakeOverRule,
        *,
        begin: Callable[[ClaimedTask], None],
        resume_child: Callable[[TaskRow], Awaitable[None]],
        renew: Callable[[], Awaitable[None]],
    ) -> None:
        self.is_draining = False
        self._journal = journal
        self._owner = owner
        self._scope = scope
        self._slots = slots
        self._lease_seconds = lease_seconds
        self._rule = rule
        self._begin = begin
        self._resume_child = resume_child
        self._renew = renew
        self._news = asyncio.Event()
        self._asked = 0
        self._answered = 0
        """Number of times that tasks may have come into the queue, and how many of them a look has answered."""
        self._sweeps = False
        self._holds_back = False
        """Whether tasks waited, at the last look, that may start when others of their users have ended."""

    def may_begin(self, label: str) -> bool:
        """Return whether a task with this label may start here at once, without overtaking those that wait."""
        if self.is_draining or label not in self._scope.labels:
            return False
        if self._slots.limit is None and not self._holds_back:
            return True
        return self._slots.free > 0 and self._asked == self._answered

    def queued(self) -> None:
        """Note that a task has come into the queue."""
        self._asked += 1
        self._news.set()

    def freed(self) -> None:
        """Note that a task has ended or come to rest here: a slot is free, and its user has one less at work."""
        self._asked += self._holds_back
        if self._asked != self._answered:
            self._news.set()

    def sweep(self) -> None:
        """Look for tasks that other processes have left behind, too."""
        self._sweeps = True
        self.queued()

    async def run(self) -> None:
        """Take tasks until this is cancelled."""
        while True:
            is_blind = self._slots.limit is not None and not self._journal.replicas.hears
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS if is_blind or self._holds_back else None):
                    await self._news.wait()
            self._news.clear()
            if is_blind or self._holds_back:
                self._asked += 1
            try:
                await self.take()
            except JournalUnavailable as error:  # the journal has said so
                self._rule.failed(error)
                await asyncio.sleep(LOOK_SECONDS)
                self._news.set()
            except Exception as error:  # of any kind: without it no task that waits would start
                self._rule.failed(error)
                log.exception("tasks that wait could not be taken; trying again")
                await asyncio.sleep(LOOK_SECONDS)
                self._news.set()

    async def take(self) -> None:
        """Take as many tasks as there are free slots."""
        sweeps, self._sweeps = self._sweeps, False
        gone = await self._rule.gone() if sweeps else ()
        while not self.is_draining and (count := self._slots.free) > 0:
            asked = self._asked
            await self._renew()
            with self._slots.reserved(count):
                taken = await self._journal.queue.take(
                    *(self._owner, self._lease_seconds, count, self._scope, gone), self._rule.is_in_grace
                )
                self._rule.reached()
                for one in taken:
                    self._begin(one)
            if len(taken) < count:
                self._holds_back = await self._journal.queue.holds_back(self._scope)
                if taken and self._holds_back:
                    continue  # Others may start that came after those which are held back.
                self._answered = asked
                if asked == self._asked:
                    break
        if sweeps and not self._scope.is_reserved:
            in_grace = self._rule.is_in_grace()
            for row in await self._journal.queue.abandoned_children(CHILDREN, self._scope, gone, in_grace=in_grace):
                await self._resume_child(row)
