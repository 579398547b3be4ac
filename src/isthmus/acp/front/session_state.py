"""State of a session that no event tells: the mode in force, and how full the context of its model is."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from isthmus.acp.v1.updates import SessionUpdate, UsageUpdate
from isthmus.client import AgentClient, CommandScope, SessionStatusProvider
from isthmus.errors import IsthmusError
from isthmus.internal_events import ModelReply
from isthmus.session_status import US_DOLLARS, Cost, SessionStatus
from isthmus.text.money import in_dollars

log = logging.getLogger(__name__)

STATUS_SECONDS = 5.0
"""Maximum wait for an agent to tell the state of a session; without it the client is told less."""


class SessionStateReader:
    """Asks the agent for the state of one session, and tells the client how full its context is when that changes."""

    def __init__(
        self,
        agent: AgentClient,
        scope: Callable[[], CommandScope],
        update: Callable[[SessionUpdate], Awaitable[None]],
    ) -> None:
        self._agent = agent
        self._scope = scope
        self._update = update
        self._windows: dict[str, int] = {}
        """Context windows by the names of models, as far as they were told after a reply."""
        self._told: UsageUpdate | None = None

    async def read(self) -> SessionStatus | None:
        """Return the state; None if the agent did not answer, which is logged."""
        if not isinstance(self._agent, SessionStatusProvider):
            return SessionStatus()
        try:
            async with asyncio.timeout(STATUS_SECONDS):
                return await self._agent.session_status(self._scope())
        except (IsthmusError, TimeoutError) as error:
            log.warning("the state of a session is not known: %s", error or "no answer in time")
            return None

    async def tell(self) -> None:
        """Tell the client how full the context is and what the session has cost, if the agent knows."""
        status = await self.read() or SessionStatus()
        if status.context_tokens is not None and status.context_window:
            cost = status.cost if not status.unpriced_models else None  # A part of the cost is not the cost.
            await self._tell(UsageUpdate(status.context_tokens, status.context_window, cost))

    async def after_reply(self, reply: ModelReply) -> None:
        """Tell the client how full the context is, and the cost, after a reply whose tokens were counted."""
        if not reply.input_tokens:
            return
        window = self._windows.get(reply.model)
        if window is None and (status := await self.read()) is not None and status.context_window:
            window = self._windows[reply.model] = status.context_window
        if window is not None:
            await self._tell(UsageUpdate(reply.input_tokens + reply.output_tokens, window, self._cost_with(reply)))

    def _cost_with(self, reply: ModelReply) -> Cost | None:
        """Return what the session has cost with a reply; None if a part of it is not known.

        What else was used is told at the end of the turn.
        """
        if reply.cost is None:
            return None
        if self._told is None:  # The first reply: a session that is loaded is told before.
            return Cost(in_dollars(reply.cost), US_DOLLARS)
        before: Cost | None = self._told.cost
        return None if before is None else replace(before, amount=round(before.amount + in_dollars(reply.cost), 12))

    def begin_anew(self) -> None:
        """Forget what the client was told."""
        self._told = None

    async def _tell(self, update: UsageUpdate) -> None:
        if update != self._told:
            self._told = update
            await self._update(update)
