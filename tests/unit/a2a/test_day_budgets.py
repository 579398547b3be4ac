"""The budgets of the days of a server's users, while their tasks work."""

from pathlib import Path

import pytest

from isthmus.a2a.server.users.users import Caps
from isthmus.a2a.serving.day_budgets import limited_days
from isthmus.agent.session.spending import BUDGET
from isthmus.events import TaskState
from support.command_harness import command_harness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say, WireUsage

pytestmark = pytest.mark.anyio

LOOK = Reply.of(Call("list_directory", {"dir_path": "."}), usage=WireUsage(1_000, 20))
DONE = Reply.of(Say("done"), usage=WireUsage(1_000, 20))


async def test_a_users_task_at_work_ends_at_the_cost_of_a_day_and_the_owners_does_not(tmp_path: Path) -> None:
    prices = {"test": ("2", "10", "0.5")}
    with GeminiWire([LOOK, LOOK, DONE]) as wire:
        async with command_harness(tmp_path.resolve(), wire, prices=prices) as harness:
            limited_days(harness.engine, Caps(max_usd_a_day=0.001), None)
            ended = await harness.of("bob").prompt("look")
            assert (ended.state, ended.end.reason) == (TaskState.FAILED, BUDGET)
            assert "bob has cost $0.0022 today, and $0.001 is the budget of a day" in (ended.end.error or "")
            assert len(harness.wire.model_requests) == 1
            assert (await harness.prompt("look")).state is TaskState.COMPLETED
