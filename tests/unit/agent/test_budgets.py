"""A turn that reaches a budget ends in order: its calls end, what is done stays, and the user is told."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.session.spending import BudgetLimits, Spending
from isthmus.development_tool import ToolCallStatus
from isthmus.events import TaskState
from isthmus.models.catalogue.facts import ModelOverride
from isthmus.models.streaming import StreamOptions
from support.agent_harness import AgentHarness
from support.scripted_wire import Call, Reply, Say, WireUsage

pytestmark = pytest.mark.anyio

PRICED = StreamOptions(overrides={"test": ModelOverride(100_000, None, Decimal(10_000), Decimal(10_000))})
"""Prices at which a token costs a cent."""
YOLO = Policy(ApprovalMode.YOLO)


def budget(limits: BudgetLimits) -> Spending:
    spending = Spending()
    spending.limits = limits
    return spending


async def test_the_calls_of_the_turn_end_and_what_they_did_stays(harness: Callable[..., AgentHarness]) -> None:
    write = Call("write_file", {"file_path": "new.txt", "content": "made\n"})
    replies = [Reply.of(write, usage=WireUsage(40, 20)), Reply.of(Say("Done."), usage=WireUsage(1, 1))]
    it = harness(replies, policy=YOLO, stream_options=PRICED, spending=budget(BudgetLimits(turn=5 * 10**11)))
    end = await it.prompt("write it")
    assert (end.state, end.reason) == (TaskState.FAILED, "budget")
    assert (end.error or "").startswith("This turn has cost $0.60, and $0.50 is the budget of a turn")
    assert [call.status for call in it.calls] == [ToolCallStatus.SUCCEEDED]
    assert (it.workspace / "new.txt").read_text("utf-8") == "made\n"
    assert len(it.wire.model_requests) == 1
    again = await it.prompt("go on")
    assert again.state is TaskState.COMPLETED
    assert "write it" in it.told()


async def test_a_model_without_a_price_is_not_asked_while_there_is_a_budget(
    harness: Callable[..., AgentHarness],
) -> None:
    it = harness([Reply.of(Say("Done."))], spending=budget(BudgetLimits(session=10**12)))
    end = await it.prompt("go")
    assert (end.state, end.reason) == (TaskState.FAILED, "budget")
    assert (end.error or "").startswith("test has no known price")
    assert not it.wire.model_requests
