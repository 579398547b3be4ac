"""The text in the middle of which the work on a task broke off, from the last events of the task."""

from collections.abc import Sequence

import pytest

from isthmus.client import OFFLINE, Delivery
from isthmus.development_tool import AgentThought
from isthmus.engine.runs.torn_text import torn_text
from isthmus.events import AgentEvent, AgentMessage, RetryNotice, StateChange, TaskState, TextContent, Thought

pytestmark = pytest.mark.anyio

BEGUN = TextContent("m", "It is f")
THOUGHT = Thought(AgentThought("Hm", ""))
CUT = RetryNotice(2, 5, 1.0, "cut")
AWAY = (RetryNotice(2, 5, 600.0, "cut", is_offline=True), StateChange(TaskState.WORKING, reason=OFFLINE))
BACK = (RetryNotice(2, 5, 0.0, "back"), StateChange(TaskState.WORKING))


class Rows:
    """A journal that has these events of one task."""

    def __init__(self, events: Sequence[AgentEvent]) -> None:
        self._events = [Delivery(seq, float(seq), event) for seq, event in enumerate(events, 1)]

    async def events(self, task_id: str, after: int, limit: int) -> Sequence[Delivery]:
        return self._events[after : after + limit]


@pytest.mark.parametrize(
    ("after", "is_torn"),
    [
        ((), True),
        ((CUT,), True),
        ((THOUGHT, CUT), True),
        (AWAY, True),
        ((*AWAY, *BACK), True),
        ((*AWAY, *BACK, *AWAY), True),
        ((AgentMessage("m", "It is f", was_streamed=True),), False),
        ((StateChange(TaskState.INPUT_REQUIRED),), False),
        ((StateChange(TaskState.COMPLETED),), False),
    ],
)
async def test_a_text_is_torn_until_it_is_complete_or_the_turn_ends(
    after: tuple[AgentEvent, ...], is_torn: bool
) -> None:
    events = [StateChange(TaskState.WORKING), BEGUN, *after]
    found = await torn_text(Rows(events), "t", len(events))  # type: ignore[arg-type]
    assert found == ("m" if is_torn else None)


async def test_a_task_that_only_waits_has_no_torn_text() -> None:
    events = [StateChange(TaskState.WORKING), *AWAY]
    assert await torn_text(Rows(events), "t", len(events)) is None  # type: ignore[arg-type]
