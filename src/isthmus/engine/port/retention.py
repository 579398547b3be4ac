"""Retention of tasks: deletes tasks with all that belongs to them, and keeps the journal below its maximum size.

The user with the most data loses the oldest ended tasks, so that no user displaces the tasks of another. Tasks that
work or wait, and ended tasks of their sessions, are never removed automatically. Removal happens in small steps, so
that running tasks do not wait for it, and is continued after a crash.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from isthmus.journal.port.base import Journal, JournalUnavailable

MAXIMUM_SIZE = 1024**3
"""Default maximum size in bytes of the journal's tasks."""
TARGET = 0.9
"""Share of the maximum size (0 to 1) down to which tasks are removed once it is exceeded."""
ROWS = 500
"""Maximum number of events that one step removes."""
PAGES = 256
"""Maximum number of database pages that one step returns to the file system."""
TASKS = 20
"""Maximum number of tasks that are marked for removal at a time when the journal is too large."""

DeleteFiles: TypeAlias = Callable[[Sequence[str]], Awaitable[None]]
"""Removes the files outside the journal of the tasks with these ids; called again after a crash."""

log = logging.getLogger(__name__)


async def _nothing(task_ids: Sequence[str]) -> None:
    """Delete nothing; used by a journal whose tasks have no files."""


class Retention:
    """Removal of a journal's tasks. ``maximum_size`` is in bytes; None means no maximum.

    When the journal is larger, tasks are removed until it fills ``target`` of that size.
    """

    def __init__(
        self,
        journal: Journal,
        delete_files: DeleteFiles | None = None,
        maximum_size: int | None = MAXIMUM_SIZE,
        *,
        target: float = TARGET,
    ) -> None:
        self._journal = journal
        self._removal = journal.removal
        self._delete_files = delete_files or _nothing
        self._maximum_size = maximum_size
        self._target = target
        self.is_full = False
        """Whether the journal exceeds its maximum and no more tasks can be removed."""

    @property
    def maximum_size(self) -> int | None:
        """Maximum size of the journal in bytes, or None."""
        return self._maximum_size

    async def delete(self, task_ids: Sequence[str], *, also_waiting: bool = False) -> Sequence[str]:
        """Remove the tasks among these that have ended (or, with ``also_waiting``, wait), and return the removed ones.

        Raises:
            JournalError: not all could be removed; the next :meth:`finish` completes the removal.
        """
        marked = await self._removal.mark(task_ids, also_waiting=also_waiting)
        await self.finish()
        return marked

    async def finish(self) -> None:
        """Finish removals that this process or an ended one began."""
        marked = await self._removal.marked()
        if not marked:
            return
        await self._delete_files(marked)
        for task_id in marked:
            while not await self._removal.remove(task_id, ROWS):
                pass
        before = -1
        while (size := await self._removal.free_pages()) and size != before:
            before = size
            await self._removal.give_back(PAGES)

    async def run(self, seconds: float) -> None:
        """Finish removals and hold the size, now and after each interval of ``seconds``, until this is cancelled."""
        while True:
            try:
                await self.finish()
                await self.hold_size()
            except JournalUnavailable:
                pass  # the journal has said so
            except Exception:  # of any kind: without it the journal would grow on
                log.exception("the size of the journal could not be checked or reduced")
            await asyncio.sleep(seconds)

    async def hold_size(self) -> Sequence[str]:
        """Remove ended tasks, the oldest first, when the journal is too large, and return the removed ones."""
        removed: list[str] = []
        if self._maximum_size is None:
            return removed
        size = before = await self._removal.size()
        goal = self._maximum_size * self._target if size > self._maximum_size else self._maximum_size
        shares = dict(await self._removal.shares()) if size > goal else {}
        while size > goal and shares:
            most = max(shares, key=lambda user: shares[user])
            oldest = await self._removal.ended(TASKS, user=most)
            gone = await self.delete([row.task_id for row in oldest])
            if not gone:
                del shares[most]  # The user's remaining tasks are needed.
                continue
            removed += gone
            freed, size = size, await self._removal.size()
            shares[most] -= freed - size
        was_full, self.is_full = self.is_full, size > self._maximum_size
        if removed:
            log.info(
                "the journal was over its maximum of %d bytes: removed the %d tasks that ended first (%d -> %d bytes)",
                self._maximum_size,
                len(removed),
                before,
                size,
            )
        if self.is_full and not was_full:
            log.warning(
                "tasks that work or wait take %d of the journal's maximum of %d bytes: no new tasks are accepted",
                size,
                self._maximum_size,
            )
        return removed
