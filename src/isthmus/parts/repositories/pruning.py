"""Removes the worktrees of sessions that were deleted, here or by another server, with their hidden refs.

A server looks at its own worktrees alone, and asks the journal about the session of each: other journals may have
sessions in the same repository, and in the same data folder.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count

from isthmus.journal.port.base import Journal, JournalUnavailable
from isthmus.text.units import show_count
from isthmus.worktrees.errors import WorktreeError
from isthmus.worktrees.owners import OwnedWorktree, WorktreeOwner
from isthmus.worktrees.repositories import Repositories
from isthmus.worktrees.repository_url import RepositoryUrl

INTERVAL_SECONDS = 60.0
"""Time in seconds after which a server looks for sessions that other processes have deleted."""
GRACE_SECONDS = 600.0
"""Time in seconds for which a worktree stays that another process may just have opened."""
UNKEPT_SECONDS = 7 * 24 * 3600.0
"""Time in seconds since its last opening for which a worktree stays whose files are not all in a checkpoint."""
FAILURES = 3
"""Number of removals that may fail before the rest waits for the next look."""

log = logging.getLogger(__name__)


class WorktreePruning:
    """Removal of worktrees of deleted sessions of the journal with this name, in these repositories."""

    def __init__(self, repositories: Repositories, urls: Sequence[RepositoryUrl], journal_name: str) -> None:
        self._repositories = repositories
        self._urls = {url.folder_name: url for url in urls}
        self._journal_name = journal_name
        self._in_use: Counter[str] = Counter()
        self._known: set[str] = set()
        """Sessions that worked in this process, which therefore are in the journal until they are deleted."""
        self._failed: dict[str, int] = {}
        """Sessions whose removal failed, in the order in which it did."""
        self._numbers = count(1)
        self._wake = asyncio.Event()

    def owner(self, user: str, context_id: str) -> WorktreeOwner:
        """Return the owner of the worktrees of a session."""
        return WorktreeOwner(self._journal_name, user, context_id)

    @contextmanager
    def in_use(self, session: str) -> Generator[None]:
        """Leave the worktree of a session alone while it works here."""
        self._in_use[session] += 1
        self._known.add(session)
        try:
            yield
        finally:
            self._in_use[session] -= 1
            if not self._in_use[session]:
                del self._in_use[session]

    def look_soon(self) -> None:
        """Look at the worktrees now, since tasks were deleted."""
        self._wake.set()

    async def run(self, journal: Journal, seconds: float = INTERVAL_SECONDS) -> None:
        """Remove worktrees of deleted sessions now, after each deletion and after each interval, until cancelled."""
        while True:
            self._wake.clear()
            try:
                await self.prune(journal)
            except JournalUnavailable:
                pass  # the journal has said so; nothing is removed without it
            except Exception:  # of any kind: without it the disk would fill
                log.exception("worktrees of deleted sessions could not be looked for")
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()

    async def prune(self, journal: Journal) -> Sequence[str]:
        """Remove the worktrees of deleted sessions, and return the sessions' names.

        Raises:
            JournalError: the journal cannot be asked; what was not removed stays.
        """
        removed: list[str] = []
        for url in self._urls.values():
            removed += await self._prune(journal, url)
        return removed

    async def _prune(self, journal: Journal, url: RepositoryUrl) -> Sequence[str]:
        removed: list[str] = []
        failures = 0
        # Listed before the journal is asked: a session is in the journal before it has a worktree.
        owned = await self._repositories.owned(url)
        for found in sorted(owned, key=lambda one: self._failed.get(one.owner.session, 0)):
            name = found.owner.session
            try:
                if not await self._may_go(journal, url, found):
                    continue
                if await self._repositories.remove(url, name, partial(self._is_deleted, journal, found.owner)):
                    self._failed.pop(name, None)
                    self._known.discard(name)
                    removed.append(name)
            except WorktreeError as error:
                log.warning("the worktree of the deleted session %s is not removed completely yet: %s", name, error)
                self._failed[name] = next(self._numbers)
                failures += 1
                if failures == FAILURES:
                    break
        if removed:
            log.info(
                "removed the worktrees of %s: %s", show_count(len(removed), "deleted session"), ", ".join(removed[:20])
            )
            try:
                await self._repositories.drop_objects(url)
            except WorktreeError as error:
                log.warning("the mirror of a repository could not be made smaller: %s", error)
        return removed

    async def _may_go(self, journal: Journal, url: RepositoryUrl, found: OwnedWorktree) -> bool:
        name = found.owner.session
        if found.owner.journal != self._journal_name or not await self._is_deleted(journal, found.owner):
            return False
        if name not in self._known and (found.idle_seconds < GRACE_SECONDS or not await journal.tasks(1)):
            # A journal without any task was rather exchanged, or is about to be restored, than emptied.
            return False
        return found.idle_seconds >= UNKEPT_SECONDS or not await self._repositories.has_unkept_changes(url, name)

    async def _is_deleted(self, journal: Journal, owner: WorktreeOwner) -> bool:
        if self._in_use[owner.session]:
            return False
        return await journal.workspace_of(owner.context_id, owner.user) is None
