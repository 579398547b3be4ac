"""What requests cost: decided when they are made, kept in the journal, and added up by turn and session."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from isthmus.agent.session.session import Session
from isthmus.agent.session.statistics import Statistics
from isthmus.events import AgentEvent, Command, Prompt, StateChange, TaskState, event_from_json, event_to_json
from isthmus.internal_events import Compacted, ModelReply, ModelUsed
from isthmus.models.catalogue.facts import ModelOverride
from isthmus.models.streaming import StreamOptions
from isthmus.task_view import SUMMARIES, ModelUsage
from support.agent_harness import AgentHarness
from support.scripted_wire import Reply, Say, WireUsage

pytestmark = pytest.mark.anyio

PRICED = ModelOverride(100_000, None, Decimal(2), Decimal(10), Decimal("0.5"))
DEAR = replace(PRICED, input_price=Decimal(2_000), output_price=Decimal(10_000))
REPLIES = [
    Reply.of(Say("one"), usage=WireUsage(100, 20, cached=40)),
    Reply.of(Say("two"), usage=WireUsage(200, 30)),
    Reply.of(Say("three"), usage=WireUsage(200, 30)),
]


def priced(override: ModelOverride = PRICED) -> StreamOptions:
    return StreamOptions(overrides={"test": override})


async def test_a_request_has_the_cost_of_its_moment(harness: Callable[..., AgentHarness]) -> None:
    it = harness(REPLIES)
    for options in (priced(), priced(DEAR), StreamOptions()):
        it.stream_options = options
        await it.prompt("go on")
    # 60 x 2 + 40 x 0.5 + 20 x 10 dollars by the million; then 200 x 2,000 + 30 x 10,000
    assert [event.cost for event in it.events if isinstance(event, ModelReply)] == [340_000_000, 700_000_000_000, None]


def test_costs_of_the_journal_are_read_and_older_events_have_none() -> None:
    for event in (
        ModelReply("m", "big", {}, 10, 5, cost=7),
        ModelUsed("big", 10, 5, cost=7, unpriced=2, requests=5, subtask="t-1"),
        Compacted("s", 1, 10, 5, 10, 5, model="big", cached_tokens=3, cost=7),
    ):
        value = event_to_json(event)
        assert event_from_json(value) == event
        for name in ("cost", "unpriced", "subtask"):
            value.pop(name, None)
        old = event_from_json(value)
        assert isinstance(old, (ModelReply, ModelUsed, Compacted))
        assert old.cost is None


def test_costs_are_added_up_by_model_with_the_requests_that_have_none() -> None:
    statistics = folded(
        ModelReply("a", "big", {}, 10, 5, cost=100),
        ModelReply("b", "big", {}, 10, 5, cost=20),
        ModelReply("c", "local", {}, 10, 5),
        ModelUsed("big", 1, 1, requests=3, cost=3, unpriced=1),
        ModelUsed("local", 1, 1, requests=2),
        Compacted("s", 1, 100, 10, 7, 3, model="big", cost=4),
        Compacted("s", 1, 100, 10, 7, 3),
    )
    models = statistics.tasks["t"].models
    assert {name: (use.requests, use.cost, use.unpriced) for name, use in models.items()} == {
        "big": (6, 127, 1),
        "local": (3, 0, 3),
        SUMMARIES: (1, 0, 1),
    }
    assert statistics.last == ModelUsage(1, input_tokens=7, output_tokens=3, unpriced=1)


def test_a_turn_ends_with_its_task_and_a_message_meanwhile_belongs_to_it() -> None:
    statistics = folded(Prompt("1", "go"), ModelReply("a", "big", {}, cost=1), Prompt("2", "and"))
    more = [
        ModelReply("b", "big", {}, cost=2),
        StateChange(TaskState.INPUT_REQUIRED),
        ModelReply("c", "big", {}, cost=4),
    ]
    add(statistics, *more)
    assert statistics.turn["big"].cost == 7
    add(statistics, StateChange(TaskState.COMPLETED), Prompt("3", "again"), ModelReply("d", "big", {}, cost=8))
    assert statistics.turn["big"].cost == 8
    statistics.take(Command("c", ("about",)), "u", None)
    assert not statistics.turn
    assert statistics.turn_before["big"].cost == 8
    assert statistics.tasks["t"].models["big"].cost == 15


def test_a_session_knows_what_it_has_cost() -> None:
    session = Session("c")
    for task_id, cost in (("t", 3), ("u", 4)):
        session.apply(Prompt("m", "x"), task_id)
        session.apply(ModelReply("a", "big", {"role": "assistant", "parts": []}, cost=cost), task_id)
    assert session.statistics.models == {"big": ModelUsage(2, cost=7)}


def folded(*events: AgentEvent) -> Statistics:
    statistics = Statistics()
    add(statistics, *events)
    return statistics


def add(statistics: Statistics, *events: AgentEvent) -> None:
    for event in events:
        statistics.take(event, "t", None)
