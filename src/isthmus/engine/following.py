"""Following a task: what comes after an event, replayed and then live, wherever the task runs."""

import asyncio
from collections.abc import AsyncIterator, Callable

from isthmus.client import Delivery, TaskNotFound
from isthmus.engine.feed import TaskFeed
from isthmus.events import StateChange
from isthmus.journal.base import Journal, JournalError, TaskRow

REPLAY_ROWS = 256
"""Rows read from the journal at a time."""
OTHERS_POLL_SECONDS = 0.2
"""How often a task that another process runs is looked at."""
FEED_SECONDS = 10.0
"""How long a feed that says nothing is waited at before it is looked for again."""


async def deliveries(
    journal: Journal,
    feed_of: Callable[[str], TaskFeed | None],
    why_broken: Callable[[TaskRow], str | None],
    task_id: str,
    after: int,
    end_from: int,
) -> AsyncIterator[Delivery]:
    """Events after number ``after``, to the first state that ends a stream and has number ``end_from`` or later.

    ``feed_of`` gives the feed of a task that runs here. ``why_broken`` says why a task of ours does not go on now.

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
            if isinstance(event, StateChange) and event.state.ends_stream and at >= end_from:
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
        if row.seq <= at and row.state.ends_stream:
            return
        if row.seq <= at and feed_of(task_id) is None:
            if (why := why_broken(row)) is not None:
                raise JournalError(f"task {task_id} cannot go on now and is tried again later: {why}")
            await asyncio.sleep(OTHERS_POLL_SECONDS)
