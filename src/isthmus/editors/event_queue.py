"""The queue behind an editor's ``changes()``: what came first goes out first, and nothing grows without limit.

Decisions about reviews are kept for ever; anything else is kept once while it waits (a second "context changed" says
nothing that the first does not), and of the texts of one view only the newest. No I/O; used on one event loop.
"""

import asyncio
import logging
from collections.abc import AsyncIterator

from isthmus.ide.editor import DiagnosticsChanged, DiffEdited, EditorEvent, FileMentioned

MAXIMUM_WAITING = 1000
"""Events; beyond it mentions and changed diagnostics are dropped, of which alone there can be any number."""

_log = logging.getLogger(__name__)


class EventQueue:
    """Events of an editor, for one reader at a time."""

    def __init__(self) -> None:
        self._events: dict[EditorEvent, None] = {}
        self._ready = asyncio.Event()
        self._ended = False
        self._is_full = False
        """Whether something was lost since the queue was empty."""

    def put(self, event: EditorEvent) -> None:
        """Add an event, unless an equal one is waiting, the queue has ended, or too much waits that may be lost."""
        if self._ended:
            return
        if isinstance(event, DiffEdited):
            for waiting in [other for other in self._events if isinstance(other, DiffEdited)]:
                if waiting.review_id == event.review_id:
                    del self._events[waiting]
        if len(self._events) >= MAXIMUM_WAITING and isinstance(event, (DiagnosticsChanged, FileMentioned)):
            if not self._is_full:
                _log.warning("an editor tells more than can be heard: mentions and diagnostics are lost for now")
            self._is_full = True
            return
        self._events.setdefault(event)
        self._ready.set()

    def end(self) -> None:
        """Nothing follows: readers get what is waiting, then stop."""
        self._ended = True
        self._ready.set()

    async def read(self) -> AsyncIterator[EditorEvent]:
        """Yield the events, as they come; ends after :meth:`end`."""
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
