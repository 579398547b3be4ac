"""Port to the budget of a task's user: told what models used, and asked between two messages of a model."""

from typing import Protocol

from isthmus.events import AgentEvent

TOKEN_QUOTA = "token_quota"  # noqa: S105 - tokens of models
"""Reason of a task that failed because its user has used the model tokens of a day."""


class Budget(Protocol):
    """The budgets of all users."""

    def used(self, user: str, event: AgentEvent) -> None:
        """Take an event of a user's task that may report tokens. Must be quick."""
        ...

    async def refusal(self, user: str) -> str | None:
        """Return why a user's task may not ask the model again, and when it may; None if it may.

        Raises:
            JournalError: what was used is not known.
        """
        ...


class Spending:
    """The budget of an engine, if it has one: who counts needs the engine's journal, and so comes later."""

    def __init__(self) -> None:
        self.budget: Budget | None = None

    def used(self, user: str, event: AgentEvent) -> None:
        """Pass an event on."""
        if self.budget is not None:
            self.budget.used(user, event)

    async def refusal(self, user: str) -> str | None:
        """Return why a user's task may not ask the model again; None if it may. Raises JournalError."""
        return None if self.budget is None else await self.budget.refusal(user)
