"""/cost and /stats: what a session, a turn and a request have cost."""

from dataclasses import replace
from typing import Any

import pytest

from isthmus.agent.session.spending import BudgetLimits
from isthmus.development_tool import ToolCallStatus
from isthmus.events import TaskState, Thought
from isthmus.internal_events import ModelChosen
from isthmus.models.gemini import GeminiModel
from isthmus.models.port.base import Effort
from support.command_harness import OpenHarness, Ran
from support.scripted_wire import Call, Reply, Say, WireUsage

pytestmark = pytest.mark.anyio

PRICES = {"test": ("2", "10", "0.5"), "other": ("1000", "5000", "100")}
FIRST = Reply.of(Call("list_directory", {"dir_path": "."}), usage=WireUsage(1_000, 20, cached=400))
SECOND = Reply.of(Say("done"), usage=WireUsage(2_000, 30))
THIRD = Reply.of(Say("other"), usage=WireUsage(7, 3))


async def test_cost_is_shown_for_the_session_its_models_the_turn_and_the_request(open_harness: OpenHarness) -> None:
    async with open_harness([FIRST, SECOND, THIRD], prices=PRICES) as harness:
        first = await harness.prompt("look")
        await harness.prompt("go on", first.context_id, model="gemini:other")
        ran = await harness.run("/cost", first.context_id)
        again = await harness.run("/cost", first.context_id)
    assert ran.text.splitlines()[:4] == [
        "This session: $0.0279",
        "  test: $0.0059, 2 requests, 3,000 tokens of input (13% of them cached), 50 of output",
        "  other: $0.022, 1 request, 7 tokens of input (0% of them cached), 3 of output",
        "Last turn: $0.022; its last request: $0.022",
    ]
    assert again.text == ran.text


async def test_a_price_that_is_not_known_is_said_and_never_guessed(open_harness: OpenHarness) -> None:
    async with open_harness([FIRST, SECOND, THIRD], prices={"other": PRICES["other"]}) as harness:
        first = await harness.prompt("look")
        unknown = await harness.run("/cost", first.context_id)
        await harness.prompt("go on", first.context_id, model="gemini:other")
        partly = await harness.run("/cost", first.context_id)
        stats = await harness.run("/stats", first.context_id)
    assert unknown.text.startswith("This session: cost unknown (no price for test)\n")
    assert "Last turn: cost unknown (no price for test); its last request: cost unknown" in unknown.text
    assert "State prices under isthmus.models" in unknown.text
    assert partly.text.startswith("This session: $0.022 and more (no price for test)\n")
    assert "  cost: $0.022 and more (no price for test)" in stats.text
    assert "3 output tokens (0 thoughts), $0.022" in stats.text


async def test_a_session_without_requests_has_cost_nothing(open_harness: OpenHarness) -> None:
    async with open_harness(prices=PRICES) as harness:
        ran = await harness.run("/cost")
    assert ran.text.startswith("This session has made no model request yet.")


async def test_cost_shows_the_users_day_and_what_is_left_of_budgets(open_harness: OpenHarness) -> None:
    async with open_harness([FIRST, SECOND, THIRD], prices=PRICES) as harness:
        harness.engine.spending.limits = BudgetLimits(session=10**12, run=2 * 10**12)
        first = await harness.prompt("look")
        await harness.prompt("elsewhere", model="gemini:other")
        ran = await harness.run("/cost", first.context_id)
        of_bob = await harness.of("bob").run("/cost")
    assert "\nToday, all of your sessions: $0.0279\n" in ran.text
    assert "\nBudgets: $1.00 for a session, of which $0.9941 is left; $2.00 for this run\n" in ran.text
    assert of_bob.text.startswith("This session has made no model request yet.\nToday, all of your sessions: $0.00\n")


LONG = Reply.of(Say("read"), usage=WireUsage(50_000, 20, cached=400))


async def test_the_price_of_a_switch_is_asked_before_it_is_made(open_harness: OpenHarness) -> None:
    async with open_harness([LONG, LONG], prices=PRICES) as harness:
        first = await harness.prompt("look")
        asked = await harness.run("/model gemini:other", first.context_id)
        assert asked.state is TaskState.INPUT_REQUIRED
        (call,) = asked.calls
        assert call.confirmation_request is not None
        assert call.confirmation_request.generic_details is not None
        assert call.confirmation_request.generic_details.description == (
            "other has nothing of this conversation in its cache: its next request reads about 50,020 tokens anew,"
            " which costs about $50.02 without its answer. With test the same costs about $0.025. Switch to other?"
        )
        refused = await harness.answer(asked, "cancel")
        assert refused.state is TaskState.CANCELED
        assert "This session stays with test." in refused.text
        assert not [event for event in refused.events if isinstance(event, ModelChosen)]
        again = await harness.answer(await harness.run("/model gemini:other", first.context_id))
        assert again.state is TaskState.COMPLETED
        assert again.calls[-1].status is ToolCallStatus.SUCCEEDED
        assert "This session continues with other (gemini)." in again.text
        await harness.prompt("go on", first.context_id)
        assert "other" in harness.wire.model_requests[-1].path


async def test_a_switch_that_costs_little_or_an_unknown_amount_is_said(open_harness: OpenHarness) -> None:
    async with open_harness([FIRST, SECOND], prices={"test": PRICES["other"], "cheap": PRICES["test"]}) as harness:
        first = await harness.prompt("look")
        cheap = await harness.run("/model gemini:cheap", first.context_id)
        unknown = await harness.run("/model gemini:unknown", first.context_id)
        new = await harness.run("/model gemini:cheap")
        same = await harness.run("/model gemini:unknown", first.context_id)
    assert cheap.state is TaskState.COMPLETED
    assert "reads about 2,030 tokens anew, which costs about $0.0041 without its answer." in cheap.text
    assert "reads about 2,030 tokens anew; cost unknown (no price for unknown)" in unknown.text
    assert "anew" not in new.text
    assert "anew" not in same.text


def _thoughts(ran: Ran) -> list[str]:
    thoughts = [event.thought for event in ran.events if isinstance(event, Thought)]
    return [thought.description for thought in thoughts if thought.subject == "Price of the switch"]


async def test_the_price_of_a_model_that_a_client_names_is_said_once(open_harness: OpenHarness) -> None:
    async with open_harness([LONG] * 4, prices=PRICES) as harness:
        first = await harness.prompt("look", model="gemini:test")
        same = await harness.prompt("go on", first.context_id, model="gemini:test")
        other = await harness.prompt("go on", first.context_id, model="gemini:other")
        after = await harness.prompt("go on", first.context_id, model="gemini:other")
    assert [_thoughts(ran) for ran in (first, same, after)] == [[], [], []]
    (said,) = _thoughts(other)
    assert "other has nothing of this conversation in its cache: its next request reads about 50," in said
    assert "which costs about $50.0" in said


def _give_efforts(monkeypatch: pytest.MonkeyPatch, *, empties_cache: bool) -> None:
    usual = GeminiModel.capabilities.fget
    assert usual is not None
    efforts = (Effort.LOW, Effort.MEDIUM, Effort.HIGH)
    changes: dict[str, Any] = {"effort_empties_cache": empties_cache, "efforts": efforts, "default_effort": "high"}
    monkeypatch.setattr(GeminiModel, "capabilities", property(lambda model: replace(usual(model), **changes)))


async def test_the_price_of_another_effort_is_asked_or_said(
    open_harness: OpenHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    _give_efforts(monkeypatch, empties_cache=True)  # as at Anthropic and OpenAI
    async with open_harness([LONG, LONG, LONG], prices={"test": PRICES["other"]}) as harness:
        first = await harness.prompt("look")
        same = await harness.run("/effort high", first.context_id)  # the default
        assert (same.state, "anew" in same.text) == (TaskState.COMPLETED, False)
        asked = await harness.run("/effort low", first.context_id)
        assert asked.state is TaskState.INPUT_REQUIRED
        assert asked.calls[0].confirmation_request is not None
        assert asked.calls[0].confirmation_request.generic_details is not None
        assert asked.calls[0].confirmation_request.generic_details.description == (
            "test has nothing of this conversation in its cache for the effort low: its next request reads about 50,020"
            " tokens anew, which costs about $50.02 without its answer. Without the switch the same costs about $5.00."
            " Switch to the effort low?"
        )
        refused = await harness.answer(asked, "cancel")
        assert "This session stays with the effort high." in refused.text
        by_client = await harness.prompt("go on", first.context_id, effort="medium")
        (said,) = _thoughts(by_client)
        assert "for the effort medium" in said


async def test_another_effort_that_leaves_the_cache_costs_nothing(
    open_harness: OpenHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    _give_efforts(monkeypatch, empties_cache=False)
    async with open_harness([LONG], prices={"test": PRICES["other"]}) as harness:
        first = await harness.prompt("look")
        ran = await harness.run("/effort low", first.context_id)
    assert ran.text == "This session continues with the effort low."
