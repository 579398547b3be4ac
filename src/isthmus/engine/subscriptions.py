"""Following a task: what comes after an event, replayed and then live, wherever the task runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from isthmus.client import Delivery, TaskNotFound
from isthmus.engine.feed import TaskFeed
from isthmus.events import StateChange, TaskState
from isthmus.journal.base import Journal, JournalError, TaskRow

REPLAY_ROWS = 256
"""Rows read from the journal at a time."""
OTHERS_POLL_SECONDS = 0.2
"""Interval in seconds at which a task that another process runs is read."""
WAITING_POLL_SECONDS = 2.0
"""Interval in seconds at which a waiting task is read for its followers: another process may continue it."""
FEED_SECONDS = 10.0
"""Time in seconds after which a silent feed is looked up again."""


class WorkNotifier:
    """Tells who waits for it that the work of a task begins, or goes on, in this process."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def begun(self, task_id: str) -> None:
        """Wake those who wait for this task."""
        for event in self._waiting.get(task_id, ()):
            event.set()

    async def wait(self, task_id: str, seconds: float) -> None:
        """Wait until the work goes on here, at the most so many seconds: another process may go on with it."""
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
    why_broken: Callable[[TaskRow], str | None],
    task_id: str,
    after: int,
    end_from: int,
    begins: "WorkNotifier | None" = None,
) -> AsyncIterator[Delivery]:
    """Events after number ``after``, to the first state that ends a stream and has number ``end_from`` or later.

    With ``begins`` a state that waits for a user is not an end: it signals when the work continues here.
    ``feed_of`` returns the feed of a task that runs here, ``why_broken`` why a task of ours cannot continue now.

    Raises:
        TaskNotFound: the task was deleted meanwhile.
        JournalError: the task cannot go on for now, or the journal cannot be read.
    """
    at, version = after, 0
    feed: TaskFeed | None = None
    while True:
        # The feed that was waited at holds its last events also when its segment has ended meanwhile.
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
            raise TaskNotFound(f"task {task_id} was deleted while it was followed; nothing more comes of it")
        if row.seq <= at and _is_end(row.state, begins):
            return
        if row.seq <= at and row.state.is_waiting and begins is not None and feed_of(task_id) is None:
            await begins.wait(task_id, WAITING_POLL_SECONDS)
            continue
        if row.seq <= at and feed_of(task_id) is None:
            if (why := why_broken(row)) is not None:
                raise JournalError(f"task {task_id} cannot go on now and is tried again later: {why}")
            await asyncio.sleep(OTHERS_POLL_SECONDS)
