"""Events of a segment that wait to be written together, in their order."""

import asyncio
from collections.abc import Callable

from isthmus.events import AgentEvent
from isthmus.internal_events import REQUEST_EVENTS

REQUEST_SECONDS = 0.03
"""Maximum time in seconds for which events that begin a request to a model wait for the next event, as text does."""


class GatheredEvents:
    """Events that are written at the end of this turn of the event loop.

    Those that begin a request to a model come one by one, each after a look at files. They wait a moment for the next
    event, since a write costs more than they do.
    """

    def __init__(self) -> None:
        self._events: list[AgentEvent] = []
        self._is_next = False
        """Whether they are written at the end of this turn of the event loop."""
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._events)

    def add(self, write: Callable[[], None], *events: AgentEvent) -> None:
        """Add events. ``write``, which writes what :meth:`take` returns, is called at the end of this turn or later."""
        self._events += events
        if all(isinstance(event, REQUEST_EVENTS) for event in events):
            if self._timer is None and not self._is_next:
                self._timer = asyncio.get_running_loop().call_later(REQUEST_SECONDS, self._begin, write)
        elif not self._is_next:
            self._is_next = True
            asyncio.get_running_loop().call_soon(self._begin, write)

    def take(self) -> list[AgentEvent]:
        """Remove and return the events."""
        self._cancel_timer()
        events, self._events = self._events, []
        return events

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self, write: Callable[[], None]) -> None:
        # The function is kept nowhere else: a segment that refers to itself would stay in memory for long.
        self._is_next = False
        self._cancel_timer()
        if self._events:
            write()
