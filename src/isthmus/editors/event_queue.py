"""The queue behind an editor's ``changes()``: first in, first out, with a maximum length.

Decisions about reviews are never dropped. Of equal events one is kept (a second "context changed" adds nothing), and
of the texts of one view the newest. No I/O; for one event loop.
"""

import asyncio
import logging
from collections.abc import AsyncIterator

from isthmus.ide.editor import DiagnosticsChanged, DiffEdited, EditorEvent, FileMentioned

MAXIMUM_WAITING = 1000
"""Maximum number of waiting events, beyond which mentions and changed diagnostics are dropped.

Of the other kinds there are never many.
"""

_log = logging.getLogger(__name__)


class EventQueue:
    """Events of an editor, for one reader at a time."""

    def __init__(self) -> None:
        self._events: dict[EditorEvent, None] = {}
        self._ready = asyncio.Event()
        self._ended = False
        self._is_full = False
        """Whether an event was dropped since the queue was empty."""

    def put(self, event: EditorEvent) -> None:
        """Add an event, unless an equal one waits or the queue has ended; drop one that may be lost if it is full."""
        if self._ended:
            return
        if isinstance(event, DiffEdited):
            for waiting in [other for other in self._events if isinstance(other, DiffEdited)]:
                if waiting.review_id == event.review_id:
                    del self._events[waiting]
        if len(self._events) >= MAXIMUM_WAITING and isinstance(event, (DiagnosticsChanged, FileMentioned)):
            if not self._is_full:
                _log.warning("the editor sends events too fast: mentions and changed diagnostics are dropped for now")
            self._is_full = True
            return
        self._events.setdefault(event)
        self._ready.set()

    def end(self) -> None:
        """End the queue: readers get the waiting events, then stop."""
        self._ended = True
        self._ready.set()

    async def read(self) -> AsyncIterator[EditorEvent]:
        """Yield the events as they come, until :meth:`end`."""
        while True:
            await self._ready.wait()
            while self._events:
                event = next(iter(self._events))
                del self._events[event]
                self._is_full = self._is_full and bool(self._events)
                yield event
            if self._ended:
                return
            self._ready.clear()
