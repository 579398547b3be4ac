"""Keeps the leases of the tasks that run in a process, and ends segments whose lease is lost or that are cancelled."""

import asyncio
import logging
import time
from collections.abc import Mapping

from isthmus.engine.runs.segment import RunningSegment
from isthmus.journal.port.base import Journal, JournalError

log = logging.getLogger(__name__)


class LeaseKeeper:
    """The leases of ``segments``, each of which is done by the asyncio task with the same id in ``running``."""

    def __init__(
        self,
        journal: Journal,
        segments: Mapping[str, RunningSegment],
        running: Mapping[str, "asyncio.Task[None]"],
        lease_seconds: float,
    ) -> None:
        self._journal = journal
        self._segments = segments
        self._running = running
        self._lease_seconds = lease_seconds
        self._renewed = time.monotonic()
        self._looking: asyncio.Task[None] | None = None
        self._looks_again = False

    async def renew(self) -> None:
        """Extend all leases; stop the segments whose lease is lost."""
        renewed = time.monotonic()
        leases = [segment.lease for segment in self._segments.values()]
        lost = await self._journal.renew(leases, self._lease_seconds) if leases else ()
        self._renewed = renewed
        for lease in lost:
            running = self._running.get(lease.task_id)
            if running is not None and self._segments[lease.task_id].lease == lease:
                running.cancel()

    async def renew_if_due(self) -> None:
        """Extend all leases if that was long ago: the process may have been stopped for a while."""
        if time.monotonic() - self._renewed > self._lease_seconds / 2:
            await self.renew()

    async def cancel_asked(self) -> None:
        """Cancel the tasks for which another process has left a cancellation."""
        leases = [segment.lease for segment in self._segments.values()]
        for task_id in await self._journal.cancelled(leases) if leases else ():
            if (segment := self._segments.get(task_id)) is not None:
                segment.cancel()

    def look_for_cancellations(self) -> None:
        """Do the same in the background, now."""
        self._looks_again = True
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="isthmus-cancellations")

    async def _look(self) -> None:
        try:
            while self._looks_again:
                self._looks_again = False
                await self.cancel_asked()
        except JournalError as error:
            log.warning("cancellations could not be read; trying again when the leases are renewed: %s", error)
        finally:
            self._looking = None
