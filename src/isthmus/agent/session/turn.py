"""The turn of an agent: its session, and the only way for events to leave the agent."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from isthmus.agent.session.interruption import PROCESS_ENDED
from isthmus.agent.session.session import Session
from isthmus.agent.session.spending import Spending, SpendingRefusal
from isthmus.events import AgentEvent, ToolCallUpdate
from isthmus.questions import QUESTION_TOOLS
from isthmus.runtime.telemetry import NO_TELEMETRY, Telemetry
from isthmus.text.last_sentence import last_sentence

Keep: TypeAlias = Callable[[AgentEvent], Awaitable[None]]
"""Passes an event, already applied to the session, on to be stored and sent."""


TakeSteering: TypeAlias = Callable[[], Awaitable[bool]]
"""Records the user's messages for the work under way; returns whether there were any."""


class AgentTurn:
    """Work on the task of a session, from its present state to a question or an end."""

    def __init__(
        self,
        session: Session,
        keep: Keep,
        take_steering: TakeSteering | None = None,
        telemetry: Telemetry = NO_TELEMETRY,
        spending: Spending | None = None,
        broken_off: str = PROCESS_ENDED,
    ) -> None:
        self.session = session
        self.keep = keep
        self.telemetry = telemetry
        self.broken_off = broken_off
        """The reason why the work before on the task broke off, if it did, as a part of a sentence."""
        self._take_steering = take_steering
        self.spending = spending or Spending()
        """The budgets of the work."""

    def passing(self, keep: Keep) -> "AgentTurn":
        """Return this turn for an agent inside of another one, which gets each event first.

        ``keep`` passes events on to this turn's own.
        """
        return AgentTurn(self.session, keep, self.takes_steering, self.telemetry, self.spending, self.broken_off)

    async def takes_steering(self) -> bool:
        """Add the user's messages for the work under way to the session; return whether there were any.

        Only while no call is open: a message in place of an answer gives calls up.
        """
        return self._take_steering is not None and await self._take_steering()

    async def refusal(self) -> SpendingRefusal | None:
        """Return why a budget allows no further message of a model; None if all do. Raises JournalError."""
        return await self.spending.refusal(self.session)

    def price_refusal(self, model: str, *, is_priced: bool) -> SpendingRefusal | None:
        """Return why a model may not be asked: there is a budget, and no price of the model; None if it may."""
        return self.spending.price_refusal(self.session, model, is_priced=is_priced)

    async def emit(self, *events: AgentEvent) -> None:
        """Apply events to the session and hand each to the journal, in this order.

        Returns immediately, except if too many rows are pending, for an AgentRecord, which outlives the process
        afterwards, and for EXECUTING, which is on the disk. A state that ends the turn is returned by the agent and not
        emitted.

        Raises:
            asyncio.CancelledError: the turn is over: its task was cancelled, or the journal took no more events.
        """
        for event in events:
            if isinstance(event, ToolCallUpdate):
                event = _with_wants(self.session, event)
            await self.keep(self.session.apply(event))
            self.spending.used(self.session, event)


def _with_wants(session: Session, event: ToolCallUpdate) -> ToolCallUpdate:
    """Return an event; one with a question also has what the agent said before the call."""
    if (request := event.tool_call.confirmation_request) is None:
        return event
    if request.wants is not None or event.tool_call.tool_name in QUESTION_TOOLS:
        return event  # a server asks, or we do
    wants = last_sentence(session.said.text)
    asking = replace(event.tool_call, confirmation_request=replace(request, wants=wants))
    return replace(event, tool_call=asking) if wants else event
