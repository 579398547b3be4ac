"""Following a task: the events after a given one, replayed and then live, wherever the task runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from isthmus.client import Delivery, TaskNotFound
from isthmus.engine.feed import TaskFeed
from isthmus.events import StateChange, TaskState
from isthmus.journal.base import Journal, JournalError
from isthmus.journal.task_rows import TaskRow

REPLAY_ROWS = 256
"""Maximum number of rows read from the journal at a time."""
OTHERS_POLL_SECONDS = 0.2
"""Interval in seconds at which a task that another process runs is read."""
WAITING_POLL_SECONDS = 2.0
"""Interval in seconds at which a waiting task is read for its followers: another process may continue it."""
FEED_SECONDS = 10.0
"""Time in seconds after which a subscriber checks whether a silent feed is still current."""


class WorkNotifier:
    """Notifier of waiters when the work of a task begins or continues in this process."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def begun(self, task_id: str) -> None:
        """Wake the waiters for this task."""
        for event in self._waiting.get(task_id, ()):
            event.set()

    async def wait(self, task_id: str, seconds: float) -> None:
        """Wait until the work continues here, but at most ``seconds``: another process may continue it."""
        event = asyncio.Event()
        waiting = self._waiting.setdefault(task_id, set())
        waiting.add(event)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await event.wait()
        finally:
            waiting.discard(event)
            if not waiting and self._waiting.get(task_id) is waiting:
                del self._waiting[task_id]


def _is_end(state: TaskState, begins: WorkNotifier | None) -> bool:
    return state.ends_stream if begins is None else state.is_terminal


async def deliveries(
    journal: Journal,
    feed_of: Callable[[str], TaskFeed | None],
    break_reason: Callable[[TaskRow], str | None],
    task_id: str,
    after: int,
    end_from: int,
    begins: "WorkNotifier | None" = None,
) -> AsyncIterator[Delivery]:
    """Yield the events after number ``after``, up to the first state from number ``end_from`` on that ends a stream.

    With ``begins``, which signals that the work continues here, a state that waits for a user is not an end.
    ``feed_of`` returns the feed of a task that runs here, ``break_reason`` the reason why a task of this process cannot
    continue now.

    Raises:
        TaskNotFound: the task was deleted meanwhile.
        JournalError: the task cannot continue for now, or the journal cannot be read.
    """
    at, version = after, 0
    feed: TaskFeed | None = None
    while True:
        # The feed still holds its last events if its segment has ended during the wait.
        batch = feed.after(at) if feed is not None else None
        if not batch:
            if (current := feed_of(task_id)) is not feed:
                feed, version = current, 0
            batch = feed.after(at) if feed is not None else None
        if batch is None:
            batch = await journal.events(task_id, at, REPLAY_ROWS)
        for delivery in batch:
            at = delivery.seq or at
            yield delivery
            event = delivery.event
            if isinstance(event, StateChange) and at >= end_from and _is_end(event.state, begins):
                return
        if batch:
            continue
        if feed is not None:
            version, progress = feed.progress_after(version)
            for delivery in progress:
                yield delivery
            if not progress and feed_of(task_id) is feed:
                await feed.changed(FEED_SECONDS)
            continue
        row = await journal.task(task_id)
        if row is None:
            raise TaskNotFound(f"task {task_id} was deleted while it was followed; it has no more events")
        if row.seq <= at and _is_end(row.state, begins):
            return
        if row.seq <= at and row.state.is_waiting and begins is not None and feed_of(task_id) is None:
            await begins.wait(task_id, WAITING_POLL_SECONDS)
            continue
        if row.seq <= at and feed_of(task_id) is None:
            if (reason := break_reason(row)) is not None:
                raise JournalError(f"task {task_id} cannot continue now and is tried again later: {reason}")
            await asyncio.sleep(OTHERS_POLL_SECONDS)
