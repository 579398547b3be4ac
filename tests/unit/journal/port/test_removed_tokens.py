"""Tokens of removed tasks: which events report some, and to which day they count."""

import pytest

from isthmus.events import AgentEvent, Prompt, TextContent
from isthmus.internal_events import Compacted, ModelReply, ModelUsed
from isthmus.journal.port.removed_tokens import DAY, TYPES, Used, day_of, used_in, used_of
from isthmus.journal.sql.rows import encode_events


@pytest.mark.parametrize(("now", "begun"), [(0.0, 0), (DAY - 0.001, 0), (DAY, DAY), (1_800_000_000.5, 1_799_971_200)])
def test_a_day_begins_at_midnight_by_utc(now: float, begun: int) -> None:
    assert day_of(now) == begun


REPLY = ModelReply("m", "model", {}, input_tokens=10, output_tokens=2, cached_tokens=5, thought_tokens=1, cost=7)
USED = ModelUsed("model", input_tokens=20, output_tokens=3, requests=4)
OF_SUBAGENT = ModelUsed("model", input_tokens=20, output_tokens=3, cost=8, subtask="t-1")
SUMMARY = Compacted("So far", 1, tokens_before=900, tokens_after=90, input_tokens=30, output_tokens=4)


@pytest.mark.parametrize(
    ("event", "used"),
    [
        (REPLY, Used(12, 7)),
        (USED, Used(23, 0, 4)),
        (ModelUsed("model", 1, 1, requests=4, cost=5, unpriced=1), Used(2, 5, 1)),
        (OF_SUBAGENT, Used()),
        (SUMMARY, Used(34, 0, 1)),
        (Prompt("m", "Fix it"), Used()),
        (TextContent("m", ""), Used()),
    ],
)
def test_input_and_output_of_a_model_count_and_nothing_else(event: AgentEvent, used: Used) -> None:
    assert used_of(event) == used
    assert (type(event).__name__ in TYPES) is (used != Used() or event is OF_SUBAGENT)


def test_the_tokens_of_stored_events_are_added_up() -> None:
    assert used_in(encode_events([REPLY, TextContent("m", "x"), USED, SUMMARY])) == Used(12 + 23 + 34, 7, 5)
    assert used_in([]) == Used()
