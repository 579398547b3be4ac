"""The guard against loops: tells the model first, then asks the user whether to go on, or fails the task without one.

How a loop is recognised is in :mod:`isthmus.agent.session.loops`. The question is a call of its own, so that it is
durable and any client can answer it.
"""

import uuid
from dataclasses import replace

from isthmus.agent.approval.grants import CANCEL, PROCEED_ONCE
from isthmus.agent.calls.events import cancelled_call
from isthmus.agent.session.open_call import OpenCall
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import (
    AgentThought,
    ConfirmationOption,
    ConfirmationRequest,
    GenericDetails,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.events import StateChange, TaskState, Thought, ToolCallUpdate
from isthmus.internal_events import LoopNotice, ToolResultRecorded
from isthmus.questions import LOOP_QUESTION

LOOP = "loop"
"""Reason of a task that ended because the model repeated itself."""
ADVICE = "Send a message to continue, and say what to do differently."


class LoopGuard:
    """Guards one turn. ``may_ask``: a user can be asked."""

    def __init__(self, turn: AgentTurn, *, may_ask: bool, is_on: bool = True) -> None:
        self._turn = turn
        self._may_ask = may_ask
        self.is_on = is_on

    async def settle(self) -> StateChange | None:
        """Carry out the user's answer to the question, if there is one; return the end of the turn if that is it."""
        for item in self._turn.session.calls.unsettled:
            if item.request.name == LOOP_QUESTION and not item.is_models and item.call and item.confirmation:
                return await self._settle(item, item.call, item.confirmation.selected_option_id)
        return None

    async def check(self) -> StateChange | None:
        """Act on a loop of calls, if there is one; return the end of the turn or its question."""
        found = self._turn.session.loops.found if self.is_on else None
        if found is None:
            return None
        return await self.act(
            f"made {found}",
            f"You have made {found}. Repeating it brings nothing new. Look at the results that you have, and do"
            " something different; if you wait for something, wait longer in one command. If you cannot go on, say what"
            " is in the way.",
        )

    async def act(self, what: str, advice: str) -> StateChange | None:
        """Act on a loop. ``what`` completes the sentence "The model ..."; ``advice`` is for the model."""
        if self._turn.session.loops.warnings == 0:
            told = AgentThought("The model repeats itself", f"It {what}, and was told so.")
            await self._turn.emit(LoopNotice(f"[Isthmus: {advice}]"), Thought(told))
            return None
        if not self._may_ask:
            message = f"The model repeats itself: it {what}, although it was told. {ADVICE}"
            return StateChange(TaskState.FAILED, message, LOOP)
        description = f"The model repeats itself: it {what}, although it was told."
        options = (
            ConfirmationOption(PROCEED_ONCE, "Go on", "Let the model continue"),
            ConfirmationOption(CANCEL, "Stop", "End the work here"),
        )
        request = ConfirmationRequest.of(options, GenericDetails(f"{description} Let it go on?"))
        identity = f"loop_{uuid.uuid4().hex[:16]}"
        asking = ToolCall(
            identity,
            ToolCallStatus.PENDING,
            LOOP_QUESTION,
            {},
            confirmation_request=request,
            description=description,
        )
        await self._turn.emit(ToolCallUpdate(asking))
        return StateChange(TaskState.INPUT_REQUIRED)

    async def _settle(self, item: OpenCall, call: ToolCall, option: str) -> StateChange | None:
        at_rest = replace(call, confirmation_request=None)
        if option == CANCEL:
            await self._turn.emit(
                ToolCallUpdate(cancelled_call(call, "Stopped by the user")),
                ToolResultRecorded(item.request.id, "The user stopped the work.", is_error=True),
            )
            return StateChange(TaskState.FAILED, f"You stopped the model, which repeated itself. {ADVICE}", LOOP)
        output = ToolOutput(text="The model goes on.")
        await self._turn.emit(
            ToolCallUpdate(replace(at_rest, status=ToolCallStatus.SUCCEEDED, output=output)),
            ToolResultRecorded(item.request.id, "The user let the model go on."),
        )
        return None
