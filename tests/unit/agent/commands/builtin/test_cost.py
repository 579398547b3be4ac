"""/cost and /stats: what a session, a turn and a request have cost."""

import pytest

from support.command_harness import OpenHarness
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
