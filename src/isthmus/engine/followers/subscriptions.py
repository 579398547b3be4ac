"""Following a task: the events after a given one, replayed and then live, wherever the task runs."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence

from isthmus.client import Delivery, TaskNotFound
from isthmus.engine.followers.feed import TaskFeed
from isthmus.engine.followers.task_news import TaskNews, TaskWatch
from isthmus.events import StateChange, TaskState, event_from_json
from isthmus.journal.port.base import Journal, JournalError
from isthmus.journal.port.notices import JournalNotice
from isthmus.journal.port.task_rows import TaskRow
from isthmus.record import record

REPLAY_ROWS = 256
"""Maximum number of rows read from the journal at a time."""
OTHERS_POLL_SECONDS = 0.2
"""Interval in seconds at which a task that another process runs is read, if no news of it are heard."""
WAITING_POLL_SECONDS = 2.0
"""Interval in seconds at which a task is read for its followers even without news."""
FEED_SECONDS = 10.0
"""Time in seconds after which a subscriber checks whether a silent feed is still current."""
FOLLOWED_SECONDS = 5.0
"""Interval in seconds at which a follower lets the process that runs the task know of it."""


@record
class FollowSources:
    """The sources of a task's events.

    ``feed_of`` returns the feed of a task that runs here, ``break_reason`` the reason why a task of this process cannot
    continue now.
    """

    journal: Journal
    news: TaskNews
    feed_of: Callable[[str], TaskFeed | None]
    break_reason: Callable[[TaskRow], str | None]


def _is_end(state: TaskState, *, to_end: bool) -> bool:
    return state.is_terminal if to_end else state.ends_stream


async def deliveries(
    sources: FollowSources, task_id: str, after: int, end_from: int, *, to_end: bool = False
) -> AsyncIterator[Delivery]:
    """Yield the events after number ``after``, up to the first state from number ``end_from`` on that ends a stream.

    With ``to_end`` a state that waits for a user is not an end.

    Raises:
        TaskNotFound: the task was deleted meanwhile.
        JournalError: the task cannot continue for now, or the journal cannot be read.
    """
    with sources.news.watch(task_id) as watch:
        elsewhere = _Elsewhere(sources.journal, task_id)
        at, version = after, 0
        feed: TaskFeed | None = None
        is_open = False  # whether the task was at work elsewhere, and all was read, when it was looked at last
        while True:
            watch.clear()
            # The feed still holds its last events if its segment has ended during the wait.
            batch = feed.after(at) if feed is not None else None
            if not batch:
                if (current := sources.feed_of(task_id)) is not feed:
                    feed, version = current, 0
                batch = feed.after(at) if feed is not None else None
            if batch is None:
                batch = await sources.journal.events(task_id, at, REPLAY_ROWS)
            for delivery in batch:
                at = delivery.seq or at
                yield delivery
                event = delivery.event
                if isinstance(event, StateChange) and at >= end_from and _is_end(event.state, to_end=to_end):
                    return
            if batch and (feed is not None or not is_open or len(batch) >= REPLAY_ROWS):
                continue
            if feed is not None:
                is_open = False
                version, progress = feed.progress_after(version)
                for delivery in progress:
                    yield delivery
                if not progress and sources.feed_of(task_id) is feed:
                    await feed.changed(FEED_SECONDS)
                continue
            if not is_open:
                row = await sources.journal.task(task_id)
                if row is None:
                    raise TaskNotFound(f"task {task_id} was deleted while it was followed; it has no more events")
                if row.seq > at or sources.feed_of(task_id) is not None:
                    continue
                if _is_end(row.state, to_end=to_end):
                    return
                if (reason := sources.break_reason(row)) is not None:
                    raise JournalError(f"task {task_id} cannot continue now and is tried again later: {reason}")
                elsewhere.look(row)
            elsewhere.announce()
            for delivery in await elsewhere.progress(watch):
                yield delivery
            is_open = await watch.wait(elsewhere.poll_seconds())


class _Elsewhere:
    """A task that does not run here, for one follower."""

    def __init__(self, journal: Journal, task_id: str) -> None:
        self._journal = journal
        self._task_id = task_id
        self._version = 0
        self._is_waiting = False
        self._is_at_work = False
        self._reads_progress = False
        self._announced: float | None = None

    def look(self, row: TaskRow) -> None:
        """Note the state of the task."""
        self._is_waiting = row.state.is_waiting
        # Progress that an earlier owner of the task has left is over.
        self._version = max(self._version, row.epoch << 32)
        self._is_at_work = row.owner is not None and not self._is_waiting

    def announce(self) -> None:
        """Let the process that runs the task know of the follower, from time to time."""
        if not self._is_at_work:
            return
        now = asyncio.get_running_loop().time()
        if self._announced is None or now - self._announced >= FOLLOWED_SECONDS:
            self._reads_progress |= self._announced is None
            self._announced = now
            self._journal.replicas.send(JournalNotice(followed=(self._task_id,)))

    async def progress(self, watch: TaskWatch) -> Sequence[Delivery]:
        """Return the progress of calls that is new."""
        if not (watch.has_progress or self._reads_progress) or not self._journal.replicas.hears:
            return ()
        watch.has_progress = self._reads_progress = False
        found = await self._journal.replicas.progress(self._task_id, self._version)
        self._version = max([self._version, *(item.version for item in found)])
        return [Delivery(None, self._journal.now(), event_from_json(json.loads(item.body))) for item in found]

    def poll_seconds(self) -> float:
        """Return the time in seconds after which the task is to be read even without news."""
        is_slow = self._is_waiting or self._journal.replicas.hears
        return WAITING_POLL_SECONDS if is_slow else OTHERS_POLL_SECONDS
