"""The latest events of a running task, for its subscribers.

A subscriber is a cursor, not a queue: it holds the number of its last event and reads the following ones, from the feed
if they are recent, otherwise from the journal. So a slow reader costs no memory and loses no event. Of a tool call's
progress only the latest value is kept.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice

from isthmus.client import Delivery
from isthmus.events import ToolCallUpdate

THINKING = ""
"""Key of the progress of thinking, in place of a call's id."""
RECENT = 512
"""Maximum number of recorded events in a feed; older ones are read from the journal."""


class TaskFeed:
    """The recent events of one running task. ``seq`` is the number of the last event before the feed began."""

    def __init__(self, seq: int) -> None:
        self._recent: deque[Delivery] = deque(maxlen=RECENT)
        self._last = seq
        self._progress: dict[str, tuple[int, Delivery]] = {}
        self._version = 0
        self._waiting: set[asyncio.Future[None]] = set()

    def publish(self, deliveries: Sequence[Delivery]) -> None:
        """Add recorded events, in order."""
        for delivery in deliveries:
            if delivery.seq != self._last + 1:
                self._recent.clear()  # The feed must have no gaps; older events are in the journal.
            self._recent.append(delivery)
            self._last = delivery.seq or self._last
            if isinstance(delivery.event, ToolCallUpdate):
                self._progress.pop(delivery.event.tool_call.tool_call_id, None)
        self._wake()

    def publish_progress(self, call_id: str, delivery: Delivery) -> None:
        """Replace the progress of a call."""
        self._version += 1
        self._progress[call_id] = (self._version, delivery)
        self._wake()

    def end_thinking(self) -> None:
        """Forget the progress of a thought, which is over."""
        self._progress.pop(THINKING, None)

    def after(self, seq: int) -> Sequence[Delivery] | None:
        """Return the recorded events after number ``seq``; None if the feed does not reach back that far."""
        missing = self._last - seq
        if missing <= 0:
            return ()
        if missing > len(self._recent):
            return None
        return list(islice(reversed(self._recent), missing))[::-1]

    def progress_after(self, version: int) -> tuple[int, Sequence[Delivery]]:
        """Return the current version, and the latest progress of each call that changed after ``version``."""
        changed = [delivery for at, delivery in self._progress.values() if at > version]
        return self._version, changed

    async def changed(self, seconds: float) -> None:
        """Wait for the next event, at most ``seconds``."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        deadline = loop.call_later(seconds, _resolve, waiter)
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            deadline.cancel()
            self._waiting.discard(waiter)

    def close(self) -> None:
        """Wake all subscribers: the segment has ended."""
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiting:
            _resolve(waiter)
        self._waiting.clear()


def _resolve(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
