"""The turn of an agent: the session that it works in, and the one way by which its events go out."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from isthmus.agent.session import Session
from isthmus.events import AgentEvent

Keep: TypeAlias = Callable[[AgentEvent], Awaitable[None]]
"""Hands an event, which the session has already, to whoever keeps and sends it."""


class AgentTurn:
    """Work on the task of a session, from where the session stands to a question or an end."""

    def __init__(self, session: Session, keep: Keep) -> None:
        self.session = session
        self.keep = keep

    async def emit(self, *events: AgentEvent) -> None:
        """Apply events to the session and hand each to the journal, in this order.

        Returns at once, except for EXECUTING, which is on the disk afterwards, and when too many rows are under way.
        A state that ends the turn is returned by the agent and not emitted.

        Raises:
            asyncio.CancelledError: the turn is over: its task was cancelled, or the journal took no more events.
        """
        for event in events:
            await self.keep(self.session.apply(event))
