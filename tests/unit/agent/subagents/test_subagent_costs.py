"""What subagents cost: once for the user, for the turn and the session that began them, and within what is left."""

from collections.abc import Generator
from decimal import Decimal
from pathlib import Path

import pytest

from isthmus.agent.session.spending import BudgetLimits
from isthmus.events import TaskState
from isthmus.text.money import PICODOLLARS
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say, WireUsage
from support.subagents import TwoModels, delegate, delegation

pytestmark = pytest.mark.anyio

CENT = PICODOLLARS // 100
A_CENT_A_TOKEN = Decimal(10_000)
LOOK = Reply.of(Call("list_directory", {"dir_path": "."}), usage=WireUsage(20, 10))


@pytest.fixture
def models() -> TwoModels:
    return TwoModels()


@pytest.fixture
def wire(models: TwoModels) -> Generator[GeminiWire]:
    with GeminiWire(models) as server:
        yield server


async def test_a_subagent_counts_in_the_turn_that_began_it_and_once_for_its_user(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    models.agent = [delegate(), Reply.of(Say("Good."), usage=WireUsage(5, 1))]
    models.subagent = [LOOK, Reply.of(Say("Nothing."), usage=WireUsage(40, 5))]
    async with delegation(tmp_path, wire, price=A_CENT_A_TOKEN) as at:
        assert (await at.prompt()).state is TaskState.COMPLETED
        child = sum(used.cost for used in (await at.view(at.child_id)).models.values())
        whole = sum(used.cost for used in (await at.view(at.task_id)).models.values())
        assert child == (30 + 45) * CENT
        own = whole - child
        assert own > 6 * CENT
        assert (await at.engine.day_use.today("")).cost == whole


async def test_a_subagent_ends_at_what_was_left_and_then_the_turn_does(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    models.agent, models.subagent = [delegate()], [LOOK, LOOK]
    async with delegation(tmp_path, wire, price=A_CENT_A_TOKEN) as at:
        at.engine.spending.limits = BudgetLimits(turn=50 * CENT)
        ended = await at.prompt()
        child = await at.engine.get(at.child_id)
    assert (child.state, child.reason) == (TaskState.FAILED, "budget")
    assert (ended.state, ended.reason) == (TaskState.FAILED, "budget")
    assert (ended.error or "").startswith("This turn has cost $0.")
    assert [whose for whose, _ in models.asked] == ["agent", "subagent", "subagent"]
