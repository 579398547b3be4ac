"""Events of editors: the queue is unlimited only for those that must not be lost, and reports a loss."""

from collections.abc import Sequence

import pytest

from isthmus.editors.event_queue import MAXIMUM_WAITING, EventQueue
from isthmus.ide.editor import ContextChanged, DiffAccepted, DiffEdited, EditorEvent, FileMentioned

pytestmark = pytest.mark.anyio


async def _read(queue: EventQueue, count: int) -> Sequence[EditorEvent]:
    events: list[EditorEvent] = []
    async for event in queue.read():
        events.append(event)
        if len(events) == count:
            break
    return events


async def test_mentions_beyond_the_cap_are_lost_with_a_word_each_time_and_decisions_never(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = EventQueue()
    for _ in range(2):
        for number in range(MAXIMUM_WAITING + 10):
            queue.put(FileMentioned(f"/{number}"))
        queue.put(DiffAccepted("1", "text"))
        events = await _read(queue, MAXIMUM_WAITING + 1)
        assert (events[0], events[-1]) == (FileMentioned("/0"), DiffAccepted("1", "text"))
    assert [record.getMessage() for record in caplog.records] == [
        "the editor sends events too fast: mentions and changed diagnostics are dropped for now"
    ] * 2


async def test_of_the_texts_of_a_view_only_the_newest_waits_and_equal_events_wait_once() -> None:
    queue = EventQueue()
    for text in ("a", "ab"):
        queue.put(DiffEdited("1", text))
        queue.put(ContextChanged())
    assert await _read(queue, 2) == [ContextChanged(), DiffEdited("1", "ab")]
