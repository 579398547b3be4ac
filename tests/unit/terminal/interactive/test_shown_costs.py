"""What a turn has cost, below it, and what the session has cost, in the status line."""

from collections.abc import Iterator, Sequence

import pytest

from isthmus.client import CommandScope, PromptMessage
from isthmus.events import TextContent
from isthmus.internal_events import Compacted, ModelReply
from isthmus.session_status import Cost, SessionStatus
from isthmus.task_view import ModelUsage
from isthmus.terminal.interactive.status_line import StatusLine
from isthmus.terminal.interactive.turn_cost import TurnCosts
from support.conversation import Conversation
from support.memory_agent import MemoryAgent, Step

pytestmark = pytest.mark.anyio

DOLLAR = 10**12


@pytest.fixture
def conversation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Conversation]:
    made = Conversation(monkeypatch)
    yield made
    made.close()


def used(requests: int = 1, cost: int = 0, unpriced: int = 0) -> ModelUsage:
    return ModelUsage(requests, input_tokens=1_000, output_tokens=200, cached_tokens=940, cost=cost, unpriced=unpriced)


def test_a_turn_shows_its_cost_and_tokens_with_the_cached_share() -> None:
    assert TurnCosts().line({"big": used(cost=12_300_000_000)}, "·") == "$0.0123 · 1.0k tokens in (94% cached), 200 out"
    two = {"big": used(cost=DOLLAR), "small": used(cost=DOLLAR // 2)}
    assert TurnCosts().line(two, "·") == "$1.50 · 2.0k tokens in (94% cached), 400 out"


def test_a_turn_that_costs_nothing_shows_nothing() -> None:
    assert TurnCosts().line({}, "·") == ""
    assert TurnCosts().line({"demo": used()}, "·") == ""


def test_a_price_that_is_not_known_is_said_once_for_each_model() -> None:
    costs = TurnCosts()
    assert costs.line({"a": used(unpriced=1)}, "·").startswith("cost unknown (no price for a) · 1.0k tokens in")
    assert costs.line({"a": used(unpriced=1)}, "·") == ""
    assert costs.line({"a": used(unpriced=1), "b": used(cost=DOLLAR)}, "·").startswith(
        "$1.00 and more (no price for a)"
    )
    assert costs.line({"c\x1b": used(unpriced=1)}, "·").startswith("cost unknown (no price for c␛)")


def replies(message: PromptMessage) -> Sequence[Step]:
    reply = ModelReply("t", "big", {}, 1_000, 200, 940, cost=DOLLAR // 4)
    return [TextContent("t", "Done."), reply, Compacted("s", 1, 9, 2, 1, 1, model="big", cost=DOLLAR // 4)]


async def test_the_cost_stands_below_the_turn(conversation: Conversation) -> None:
    await conversation.run(MemoryAgent(replies), "do it")
    assert "Done.\n\n$0.50 " in conversation.text


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (SessionStatus(cost=Cost(0.0123, "USD")), "plan · $0.0123"),
        (SessionStatus(cost=Cost(12.3, "USD")), "plan · $12.30"),
        (SessionStatus(cost=Cost(0.0, "USD")), "plan"),
        (SessionStatus(unpriced_models=("m",)), "plan · cost unknown"),
        (SessionStatus(cost=Cost(0.5, "USD"), unpriced_models=("m",)), "plan · $0.50 and more"),
        (SessionStatus(cost=Cost(0.4237, "CHF")), "plan · 0.42 CHF"),
    ],
)
def test_the_status_line_shows_what_is_known_of_the_sessions_cost(status: SessionStatus, shown: str) -> None:
    line = StatusLine(MemoryAgent(replies), lambda: CommandScope(), lambda: "plan", "·", status=status)
    assert line.text(80) == shown
