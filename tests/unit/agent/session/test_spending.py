"""Budgets: what is compared with which limit, and what a user is told at one."""

import pytest

from isthmus.agent.session.session import Session
from isthmus.agent.session.spending import BUDGET, BudgetLimits, Spending, SpendingRefusal
from isthmus.encoding.codec import JsonObject
from isthmus.events import AgentEvent, Prompt, StateChange, TaskState
from isthmus.internal_events import ModelReply, ModelUsed, SubagentBegun

pytestmark = pytest.mark.anyio

CENT = 10**10
NO_MESSAGE: JsonObject = {"role": "assistant", "parts": []}


def reply(cost: int | None) -> ModelReply:
    return ModelReply("m", "big", NO_MESSAGE, 1, 1, cost=cost)


class Turns:
    """Sessions whose events pass through one Spending, as in one process."""

    def __init__(self, limits: BudgetLimits) -> None:
        self.spending = Spending()
        self.spending.limits = limits
        self.sessions: dict[str, Session] = {}

    async def text(self, task_id: str, *events: AgentEvent) -> str:
        """Emit events of a task, and return what its user would be told; empty if it may go on."""
        session = self.sessions.setdefault(task_id.partition("/")[0], Session("c"))
        for event in events:
            self.spending.used(session, session.apply(event, task_id))
        refusal = await self.spending.refusal(session)
        assert refusal is None or refusal.reason == BUDGET
        return "" if refusal is None else refusal.text


async def test_a_turn_ends_at_its_budget_and_the_next_one_begins_anew() -> None:
    turns = Turns(BudgetLimits(turn=5 * CENT))
    assert await turns.text("t", Prompt("1", "go"), reply(3 * CENT), reply(CENT)) == ""
    assert await turns.text("t", reply(CENT + 1)) == (
        "This turn has cost $0.05, and $0.05 is the budget of a turn (isthmus.budget.turn). It ended here, and what was"
        " done is kept: send a message to go on in a new turn, or raise the budget."
    )
    assert await turns.text("t", StateChange(TaskState.FAILED), Prompt("2", "again")) == ""


async def test_a_session_ends_at_its_budget_over_all_of_its_turns() -> None:
    turns = Turns(BudgetLimits(session=5 * CENT))
    ended = StateChange(TaskState.COMPLETED)
    assert await turns.text("t/1", Prompt("1", "go"), reply(3 * CENT), ended) == ""
    found = await turns.text("t/2", Prompt("2", "go"), reply(2 * CENT))
    assert found.startswith(
        "This session has cost $0.05, and $0.05 is the budget of a session (isthmus.budget.session)"
    )
    assert found.endswith("begin a new session (/clear), or raise the budget and send a message to go on.")
    assert (await turns.text("t/2", ended)).startswith("This session")
    assert await turns.text("other", Prompt("1", "go"), reply(CENT)) == ""


async def test_a_run_ends_at_its_budget_over_all_of_its_sessions() -> None:
    turns = Turns(BudgetLimits(run=5 * CENT))
    assert await turns.text("one", Prompt("1", "go"), reply(3 * CENT)) == ""
    found = await turns.text("other", Prompt("1", "go"), reply(2 * CENT))
    assert found.startswith("This run of the program has cost $0.05, and $0.05 is its budget (--max-budget-usd).")


async def test_what_a_subagent_costs_counts_while_it_works_and_once() -> None:
    turns = Turns(BudgetLimits(turn=6 * CENT, run=20 * CENT))
    assert await turns.text("parent", Prompt("1", "go"), reply(CENT)) == ""
    left = turns.spending.left(turns.sessions["parent"])
    assert left == 5 * CENT
    begun = [Prompt("p", "part"), SubagentBegun("explorer", "", "parent", "call", budget=left)]
    assert await turns.text("one", *begun, reply(2 * CENT)) == ""
    # Another one that begins now may use what is left, and both end where the sum is too much.
    assert turns.spending.left(turns.sessions["parent"]) == 3 * CENT
    also = [Prompt("p", "part"), SubagentBegun("explorer", "", "parent", "call", budget=3 * CENT)]
    assert await turns.text("two", *also) == ""
    assert await turns.text("one", reply(2 * CENT)) == ""
    assert (await turns.text("two", reply(CENT))).startswith("The work that this is a part of has used up its budget")
    assert (await turns.text("one")).startswith("The work that this is a part of has used up its budget")
    told = [ModelUsed("big", 1, 1, cost=4 * CENT, subtask="one"), ModelUsed("big", 1, 1, cost=CENT, subtask="two")]
    assert (await turns.text("parent", *told)).startswith("This turn has cost $0.06")
    assert turns.spending.left(turns.sessions["parent"]) == 0
    assert await Turns(BudgetLimits(run=7 * CENT)).text("x", reply(6 * CENT), told[0]) == ""


async def test_a_subagent_of_another_process_keeps_to_what_was_left() -> None:
    turns = Turns(BudgetLimits(turn=6 * CENT))
    session = Session("c")
    for event in (Prompt("p", "part"), SubagentBegun("e", "", "parent", "call", budget=3 * CENT), reply(2 * CENT)):
        session.apply(event, "child")
    turns.sessions["child"] = session
    assert await turns.text("child") == ""
    assert (await turns.text("child", reply(CENT))).startswith("The work that this is a part of")


async def test_a_budget_is_not_kept_with_a_model_whose_price_is_not_known() -> None:
    turns = Turns(BudgetLimits(session=5 * CENT))
    session = Session("c")
    assert turns.spending.price_refusal(session, "llama", is_priced=True) is None
    assert turns.spending.price_refusal(session, "llama", is_priced=False) == SpendingRefusal(
        "llama has no known price, so that the budget of this work cannot be kept, and it was not asked. State its"
        " price under isthmus.models in the settings, choose another model, or remove the budget.",
        BUDGET,
    )
    assert Spending().price_refusal(session, "llama", is_priced=False) is None
    # A price that lacks a part, such as that of cached tokens, shows after the request alone.
    found = await turns.text("t", Prompt("1", "go"), reply(None))
    assert found.startswith("What big costs is not known, so that the budget of this work cannot be kept.")
    assert await Turns(BudgetLimits()).text("t", Prompt("1", "go"), reply(None)) == ""
