"""Whether an engine can take work: it is not draining, and its journal can be read.

Probes of strangers ask this as often as they like, so the journal is asked at most once a second, and never a second
time while it has not answered.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from isthmus.engine.engine import Engine

DRAINING = "draining"
NO_JOURNAL = "journal"
CACHED_SECONDS = 1.0
"""Time in seconds for which an answer of the journal counts."""
ANSWER_SECONDS = 2.0
"""Maximum time in seconds that a caller waits for the journal."""

log = logging.getLogger(__name__)


class Readiness:
    """The readiness of one engine; call it for the reason why it cannot take work, as one word, or None."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._asked: asyncio.Task[bool] | None = None
        self._asked_at = clock()

    async def __call__(self) -> str | None:
        """Return :data:`DRAINING`, :data:`NO_JOURNAL` or None."""
        if self._engine.is_draining:
            return DRAINING
        return None if await self.has_journal() else NO_JOURNAL

    async def has_journal(self) -> bool:
        """Return whether the journal could be read within the last second."""
        asked = self._asked
        if asked is None or (asked.done() and self._clock() - self._asked_at >= CACHED_SECONDS):
            asked = self._asked = asyncio.create_task(self._read(), name="isthmus-readiness")
            self._asked_at = self._clock()
        await asyncio.wait({asked}, timeout=ANSWER_SECONDS)
        return asked.done() and not asked.cancelled() and asked.result()

    async def _read(self) -> bool:
        try:
            await self._engine.journal.task("")  # one step in an index
        except Exception as error:  # whatever it is, the journal was not read
            log.debug("the journal could not be read: %s", error)
            return False
        return True
