"""Carries out the calls of a session that are approved, and goes on with one that had asked something meanwhile.

A tool that asks in the middle of its work gets a call of its own for the question, ``<call>?1``, that waits for a
person as any other does, while the tool is set aside (:mod:`isthmus.agent.parked_calls`). The model is not told of
it. Deliberately not here: which calls are made (:mod:`isthmus.agent.calls`).
"""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, assert_never

from isthmus.agent.approval import ApprovalMode, Policy
from isthmus.agent.call_events import CANCELLED_CATEGORY, failed, refused
from isthmus.agent.parked_calls import ParkedCall, ParkedCalls, RunningCall
from isthmus.agent.resources import ModelSource
from isthmus.agent.session import QUESTION_MARK
from isthmus.agent.turn import AgentTurn
from isthmus.checkpoints.base import CheckpointError, CheckpointFor, Checkpoints
from isthmus.development_tool import (
    ConfirmationRequest,
    ErrorDetails,
    FileDiff,
    GenericDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.events import AgentEvent, Checkpoint, ModelUsed, ToolCallUpdate, ToolResultRecorded, ToolsLoaded
from isthmus.models.base import Done, Finish, Message, ModelError, ModelRequest, Text, text_of
from isthmus.text import with_ellipsis
from isthmus.tools.asking import AskModel, AskPerson, Chosen, ModelAnswer, ModelPrompt, NoAnswer
from isthmus.tools.base import LiveContent, ToolFailed, ToolItem, ToolSucceeded
from isthmus.tools.failure import ToolFailure

ABOUT_CHARACTERS = 80
BeforeEdit: TypeAlias = Callable[[Path], Awaitable[None]]
"""Told of a file that is about to be edited."""


class CallExecution:
    """Runs the approved calls of one turn; ``policy`` is what holds in its session."""

    def __init__(
        self,
        turn: AgentTurn,
        policy: Policy,
        parked: ParkedCalls,
        checkpoints: Checkpoints | None,
        open_model: ModelSource | None,
        before_edit: BeforeEdit | None = None,
    ) -> None:
        self._turn = turn
        self._session = turn.session
        self._before_edit = before_edit
        self._policy = policy
        self._parked = parked
        self._checkpoints = checkpoints
        self._open_model = open_model

    async def begin(self, announced: ToolCall, items: AsyncGenerator[ToolItem, None], edit: FileDiff | None) -> None:
        """Run a call that is announced, or executing already; ``edit`` is the file that it changes, which is put aside
        before."""
        call = replace(announced, status=ToolCallStatus.EXECUTING)
        checkpoint_id: str | None = None
        if self._checkpoints is not None and edit is not None:
            try:
                checkpoint_id = await self._checkpoints.take(self._checkpoint_for(call), [Path(edit.file_path)])
            except CheckpointError as error:
                message = f"{error}. Without a checkpoint nothing is edited, so nothing was."
                await self._turn.emit(*refused(announced, ErrorDetails(message, "checkpoint_failure")))
                return
            await self._turn.emit(Checkpoint(checkpoint_id, call.tool_call_id))
        if self._before_edit is not None and edit is not None:
            await self._before_edit(Path(edit.file_path))
        if announced != call:
            await self._turn.emit(ToolCallUpdate(call))
        await self._follow(RunningCall(call, items, checkpoint_id))

    def waits_here(self, call_id: str) -> bool:
        """Whether a call that executes was set aside in this process."""
        return self._parked.find(self._session.task_id, call_id) is not None

    async def go_on(self, call_id: str) -> None:
        """Go on with a call that was set aside, unless it still waits for its answer."""
        task_id = self._session.task_id
        found = self._parked.find(task_id, call_id)
        if found is None:
            return
        question = self._session.calls.get(found.question_id)
        answer = question.confirmation if question is not None else None
        if answer is None and found.ask.is_open:
            return
        parked = self._parked.take(task_id, call_id) or found
        try:
            if question is not None and question.call is not None and question.result is None:
                await self._settle(question.call, parked, answer)
            await self._follow(parked.running)
        finally:
            if not self.waits_here(call_id):
                await parked.running.items.aclose()

    async def _follow(self, running: RunningCall) -> None:
        """Emit what a call does until it ends or asks."""
        call = running.call
        is_parked = False
        try:
            async for item in running.items:
                match item:
                    case LiveContent(text):
                        await self._turn.emit(ToolCallUpdate(replace(call, live_content=text)))
                    case AskPerson() as ask:
                        if await self._ask(running, ask):
                            is_parked = True
                            return
                    case ToolSucceeded(output, for_model, media, loads):
                        await self._edited(running.checkpoint_id)
                        if loads:
                            await self._turn.emit(ToolsLoaded(loads))
                        await self._turn.emit(
                            ToolCallUpdate(replace(call, status=ToolCallStatus.SUCCEEDED, output=output)),
                            ToolResultRecorded(call.tool_call_id, for_model, media=media),
                        )
                        return
                    case ToolFailed(error, for_model, media):
                        await self._turn.emit(
                            ToolCallUpdate(replace(call, status=ToolCallStatus.FAILED, error=error)),
                            ToolResultRecorded(
                                call.tool_call_id, for_model or error.message, is_error=True, media=media
                            ),
                        )
                        return
                    case _:
                        assert_never(item)
        except ToolFailure as failure:
            await self._turn.emit(*failed(call, failure, self._session.user))
            return
        finally:
            if not is_parked:
                await running.items.aclose()
        raise RuntimeError(f"the tool {call.tool_name} ended without a result")

    # --- questions of a call ---

    async def _ask(self, running: RunningCall, ask: AskPerson) -> bool:
        """Put a call's question; return whether the call waits for the user now."""
        question = self._question_call(running.call, ask)
        if self._is_allowed(ask):
            await self._turn.emit(ToolCallUpdate(question))
            await self._ask_model(question, ask)
            return False
        if (why_not := self._why_not_asked(ask)) is not None:
            ask.give(NoAnswer(why_not, is_refusal=True))
            await self._turn.emit(*refused(question, ErrorDetails(why_not, "permission_denied")))
            return False
        await self._turn.emit(ToolCallUpdate(_asking(question, ask), asked_in=self._parked.process))
        self._parked.park(self._session.task_id, ParkedCall(running, ask, question.tool_call_id))
        return True

    def _question_call(self, call: ToolCall, ask: AskPerson) -> ToolCall:
        asked = ask.question
        mark = f"{call.tool_call_id}{QUESTION_MARK}"
        number = 1 + sum(call_id.startswith(mark) for call_id in self._session.calls)
        return ToolCall(
            f"{mark}{number}", ToolCallStatus.PENDING, asked.kind, asked.about, description=asked.description
        )

    def _is_allowed(self, ask: AskPerson) -> bool:
        """A model may be asked without a person's word when the mode or an earlier answer says so."""
        question = ask.question
        if not isinstance(ask, AskModel):
            return False  # Nothing stands for what only a person knows.
        if self._policy.mode is ApprovalMode.YOLO:
            return True
        return question.always is not None and any(
            option == question.always
            and call.tool_name == question.kind
            and call.input_parameters.get("server") == question.asker
            for call, option in self._session.answered
        )

    def _why_not_asked(self, ask: AskPerson) -> str | None:
        if self._policy.may_ask:
            return None
        if isinstance(ask, AskModel):
            return (
                "Asking the model for a server needs a person's permission and nobody can be asked here, so it was "
                "declined. Allow it with --approval-mode yolo."
            )
        return (
            f"{ask.question.asker} asked for what only a person can answer, and nobody can be asked here, so it was "
            "declined. Run it where somebody can answer: in a terminal or an editor, or over A2A."
        )

    async def _settle(self, question: ToolCall, parked: ParkedCall, answer: ToolCallConfirmation | None) -> None:
        """End a question that was answered, or taken back, and tell the asker."""
        ask, asked = parked.ask, parked.ask.question
        at_rest = replace(question, confirmation_request=None)
        if answer is None or not ask.is_open:
            await self._turn.emit(*_not_answered(at_rest, ask.withdrawn or "It is not asked any more"))
            return
        content = answer.file_details.new_content if answer.file_details is not None else None
        chosen = Chosen(answer.selected_option_id, content)
        name = next((option.name for option in asked.options if option.id == chosen.option_id), chosen.option_id)
        if chosen.option_id not in asked.accepting:
            ask.give(chosen)
            await self._turn.emit(*_not_answered(at_rest, f"The person chose: {name}"))
            return
        if isinstance(ask, AskModel):
            await self._ask_model(at_rest, ask)
            return
        # On the disk before the asker acts upon it.
        await self._turn.emit(ToolCallUpdate(replace(at_rest, status=ToolCallStatus.EXECUTING)))
        ask.give(chosen)
        await self._succeeded(at_rest, ToolOutput(text=f"Answered: {name}"))

    async def _succeeded(self, question: ToolCall, output: ToolOutput) -> None:
        await self._turn.emit(
            ToolCallUpdate(replace(question, status=ToolCallStatus.SUCCEEDED, output=output)),
            ToolResultRecorded(question.tool_call_id, "Answered"),
        )

    async def _ask_model(self, question: ToolCall, ask: AskPerson) -> None:
        """Make the request that the user has allowed, and give its answer to whoever asked."""
        if not isinstance(ask, AskModel) or self._open_model is None:
            ask.give(NoAnswer("There is no model here"))
            await self._turn.emit(*refused(question, ErrorDetails("There is no model here", "no_model")))
            return
        await self._turn.emit(ToolCallUpdate(replace(question, status=ToolCallStatus.EXECUTING)))
        try:
            model = await self._open_model(self._session.model)
            done: Done | None = None
            async with aclosing(model.stream(_request(ask.prompt))) as stream:
                async for item in stream:
                    if isinstance(item, Done):
                        done = item
            if done is None:
                raise RuntimeError(f"the {model.provider} model's stream ended without its Done item")
        except ModelError as error:
            ask.give(NoAnswer(str(error)))
            details = ErrorDetails(str(error), f"model_{error.kind}")
            await self._turn.emit(
                ToolCallUpdate(replace(question, status=ToolCallStatus.FAILED, error=details)),
                ToolResultRecorded(question.tool_call_id, details.message, is_error=True),
            )
            return
        except BaseException:
            ask.withdraw("The request to the model was cancelled")
            raise
        text, usage = text_of(done.message), done.usage
        await self._turn.emit(ModelUsed(model.name, usage.input, usage.output, usage.cached, usage.thoughts))
        ask.give(ModelAnswer(text, model.name, done.finish is Finish.LENGTH))
        await self._succeeded(question, ToolOutput(text=text))

    # --- checkpoints ---

    def _checkpoint_for(self, call: ToolCall) -> CheckpointFor:
        session = self._session
        first = next((line.strip() for line in session.prompt.splitlines() if line.strip()), "")
        about = with_ellipsis(first, ABOUT_CHARACTERS)
        return CheckpointFor(
            session.checkpoint_scope, session.task_id, call.tool_call_id, Path(session.workspace), about
        )

    async def _edited(self, checkpoint_id: str | None) -> None:
        if self._checkpoints is None or checkpoint_id is None:
            return
        # Only to tell later whether somebody else changed the file since: the edit itself is made.
        with contextlib.suppress(CheckpointError):
            await self._checkpoints.edited(checkpoint_id)


def _request(prompt: ModelPrompt) -> ModelRequest:
    messages = tuple(Message(item.role, (Text(item.text), *item.media)) for item in prompt.messages)
    return ModelRequest(prompt.system, messages, max_output_tokens=prompt.maximum_tokens)


def _asking(question: ToolCall, ask: AskPerson) -> ToolCall:
    request = ConfirmationRequest(ask.question.options)
    match ask.question.details:
        case FileDiff() as document:
            request = replace(request, file_edit_details=document)
        case GenericDetails() as details:
            request = replace(request, generic_details=details)
    return replace(question, confirmation_request=request)


def _not_answered(question: ToolCall, why: str) -> Sequence[AgentEvent]:
    error = ErrorDetails(why, CANCELLED_CATEGORY)
    ended = replace(question, status=ToolCallStatus.CANCELLED, error=error, confirmation_request=None)
    return (ToolCallUpdate(ended), ToolResultRecorded(question.tool_call_id, why, is_error=True))
