"""Budgets of money and tokens: told what models used, and asked between two messages of a model.

What a turn and a session have cost is in the session's statistics. What a run of the program has cost, and subagents
that are at work, is counted here; the rest is up to each :class:`Budget`, such as the day of a user in the journal. A
request's cost is known only after it, so the last one may go beyond a budget.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from isthmus.agent.session.session import Session
from isthmus.events import AgentEvent
from isthmus.internal_events import Compacted, ModelReply, ModelUsed, SubagentBegun
from isthmus.record import record
from isthmus.task_view import ModelUsage, total_usage, unpriced_models
from isthmus.text.money import show_dollars

TOKEN_QUOTA = "token_quota"  # noqa: S105 - tokens of models
"""Reason of a task that failed because its user has used the model tokens of a day."""
BUDGET = "budget"
"""Reason of a task that failed because the work has cost as much as a budget allows."""
MAXIMUM_PARENTS = 1_000
"""Maximum number of tasks of which the costs of subagents are remembered."""
_KEPT = "It ended here, and what was done is kept"


@record
class SpendingRefusal:
    """SpendingRefusal of a further request to a model: a text for the user, and a machine-readable reason."""

    text: str
    reason: str


@record
class BudgetLimits:
    """Maximum of what models may cost, in picodollars, by what it is for; None for no limit.

    ``run`` is all work of this process.
    """

    turn: int | None = None
    session: int | None = None
    run: int | None = None

    @property
    def is_any(self) -> bool:
        """Whether there is any limit."""
        return (self.turn, self.session, self.run) != (None, None, None)


class Budget(Protocol):
    """The budgets of all users."""

    def used(self, user: str, event: AgentEvent) -> None:
        """Take an event of a user's task that may report tokens and costs. Must be quick."""
        ...

    async def refusal(self, user: str) -> SpendingRefusal | None:
        """Return why a user's task may not ask the model again, and when it may; None if it may.

        Raises:
            JournalError: what was used is not known.
        """
        ...

    def limits_money(self, user: str) -> bool:
        """Return whether what a user's models cost is limited."""
        ...


@dataclass(slots=True)
class _Subagents:
    """Costs of the subagents of one task in this process."""

    spent: int = 0
    told: int = 0
    """Part of ``spent`` that the task itself has, since these subagents have ended."""
    begun: dict[str, int] = field(default_factory=dict[str, int])
    """Value of ``spent`` when each of them began, by its task."""


class Spending:
    """The budgets of an engine. Those that need its journal are added once that is open."""

    def __init__(self) -> None:
        self.limits = BudgetLimits()
        self.budgets: list[Budget] = []
        self._run = 0
        self._subagents: dict[str, _Subagents] = {}

    def used(self, session: Session, event: AgentEvent) -> None:
        """Take an event that the session has applied."""
        if not isinstance(event, ModelReply | ModelUsed | Compacted):
            return
        for budget in self.budgets:
            budget.used(session.user, event)
        if isinstance(event, ModelUsed) and event.subtask:
            self._of(session.task_id).told += event.cost or 0
            return
        self._run += event.cost or 0
        if session.subagent is not None:
            self._of(session.subagent.parent_task_id).spent += event.cost or 0

    async def refusal(self, session: Session) -> SpendingRefusal | None:
        """Return why the work on a session's task may not ask a model again; None if it may. Raises JournalError."""
        text = self._over_limit(session) or self._unknown(session)
        if text is not None:
            return SpendingRefusal(text, BUDGET)
        for budget in self.budgets:
            if (refusal := await budget.refusal(session.user)) is not None:
                return refusal
        return None

    def price_refusal(self, session: Session, model: str, *, is_priced: bool) -> SpendingRefusal | None:
        """Return why a model may not be asked although nothing is used up; None if it may."""
        if is_priced or not self._has_budget(session):
            return None
        text = (
            f"{model} has no known price, so that the budget of this work cannot be kept, and it was not asked. State"
            " its price under isthmus.models in the settings, choose another model, or remove the budget."
        )
        return SpendingRefusal(text, BUDGET)

    def left(self, session: Session) -> int | None:
        """Return what the turn and the session may still cost; None for no limit."""
        limits, statistics = self.limits, session.statistics
        lefts = [
            limit - _cost(models.values())
            for limit, models in ((limits.turn, statistics.turn), (limits.session, statistics.models))
            if limit is not None
        ]
        if not lefts:
            return None
        of_subagents = self._subagents.get(session.task_id, _Subagents())
        return max(0, min(lefts) - max(0, of_subagents.spent - of_subagents.told))

    def _over_limit(self, session: Session) -> str | None:
        limits = self.limits
        if (subagent := session.subagent) is not None:
            if subagent.budget is not None and self._spent_since(session, subagent) >= subagent.budget:
                return f"The work that this is a part of has used up its budget. {_KEPT}."
        else:
            turn, whole = _cost(session.statistics.turn.values()), _cost(session.statistics.models.values())
            if limits.turn is not None and turn >= limits.turn:
                return (
                    f"This turn has cost {show_dollars(turn)}, and {show_dollars(limits.turn)} is the budget of a turn"
                    f" (isthmus.budget.turn). {_KEPT}: send a message to go on in a new turn, or raise the budget."
                )
            if limits.session is not None and whole >= limits.session:
                return (
                    f"This session has cost {show_dollars(whole)}, and {show_dollars(limits.session)} is the budget of"
                    f" a session (isthmus.budget.session). {_KEPT}: begin a new session (/clear), or raise the budget"
                    " and send a message to go on."
                )
        if limits.run is not None and self._run >= limits.run:
            return (
                f"This run of the program has cost {show_dollars(self._run)}, and {show_dollars(limits.run)} is its"
                f" budget (--max-budget-usd). {_KEPT}: to go on, start the program with --resume and another budget."
            )
        return None

    def _unknown(self, session: Session) -> str | None:
        """Return that a cost of the turn is not known although there is a budget."""
        names = unpriced_models(session.statistics.turn)
        if not names or not self._has_budget(session):
            return None
        return (
            f"What {', '.join(names)} costs is not known, so that the budget of this work cannot be kept. {_KEPT}."
            " State all prices under isthmus.models in the settings, choose another model, or remove the budget."
        )

    def _has_budget(self, session: Session) -> bool:
        return self.limits.is_any or any(budget.limits_money(session.user) for budget in self.budgets)

    def _spent_since(self, session: Session, subagent: SubagentBegun) -> int:
        """Return what a subagent, and others of its task, have cost since it began."""
        siblings = self._of(subagent.parent_task_id)
        own = _cost(session.statistics.models.values())
        return siblings.spent - siblings.begun.setdefault(session.task_id, siblings.spent - own)

    def _of(self, parent: str) -> _Subagents:
        found = self._subagents.get(parent)
        if found is None:
            found = self._subagents[parent] = _Subagents()
            while len(self._subagents) > MAXIMUM_PARENTS:
                del self._subagents[next(iter(self._subagents))]
        return found


def _cost(models: Iterable[ModelUsage]) -> int:
    return total_usage(models).cost
