"""Carries out the approved calls of a session, and continues a call that had asked a question meanwhile.

A tool that asks in the middle of its work gets a call of its own for the question, ``<call>?1``. That call waits for
the user as any other does, and the model does not see it. Meanwhile the running call is suspended
(:mod:`isthmus.agent.calls.suspended_calls`).
"""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.calls.call_hooks import CallHooks
from isthmus.agent.calls.events import CANCELLED_CATEGORY, failure_events, refusal_events
from isthmus.agent.calls.own_changes import own_changes, unchanged_files
from isthmus.agent.calls.relayed_questions import (
    answered_events,
    answers_of,
    relay_events,
    withdrawal_events,
)
from isthmus.agent.calls.running_call import OpenQuestion, Progress, RunningCall
from isthmus.agent.calls.suspended_calls import SuspendedCall, SuspendedCalls
from isthmus.agent.hooks.refusal import RefusedByHookError
from isthmus.agent.resources import ModelSource
from isthmus.agent.session.turn import AgentTurn
from isthmus.checkpoints.base import CheckpointError, CheckpointFor, Checkpoints
from isthmus.development_tool import (
    ConfirmationRequest,
    ErrorDetails,
    ExecuteDetails,
    FileDiff,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.events import AgentEvent, ToolCallUpdate
from isthmus.internal_events import Checkpoint, FilesSeen, ModelUsed, SeenText, ToolResultRecorded, ToolsLoaded
from isthmus.models.port.base import Done, Finish, Message, ModelError, ModelRequest, Text, text_of
from isthmus.questions import APPROVAL_REQUIRED, ASKED_IN, QUESTION_MARK
from isthmus.text.visible import with_ellipsis
from isthmus.tools.port.base import (
    Approved,
    DelegatingTool,
    ModelTokens,
    Tool,
    ToolContext,
    ToolFailed,
    ToolKind,
    ToolResult,
    ToolSucceeded,
    ToolWaits,
)
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.user_question import Chosen, ModelAnswer, ModelPrompt, NoAnswer, UserQuestion

ABOUT_CHARACTERS = 80
BeforeEdit: TypeAlias = Callable[[Path], Awaitable[None]]
"""Called with a file that is about to be edited."""


class CallExecution:
    """Runs the approved calls of one turn; ``policy`` is the policy of its session."""

    def __init__(
        self,
        turn: AgentTurn,
        policy: Policy,
        suspended: SuspendedCalls,
        checkpoints: Checkpoints | None,
        open_model: ModelSource | None,
        before_edit: BeforeEdit | None = None,
        hooks: CallHooks | None = None,
    ) -> None:
        self._turn = turn
        self._session = turn.session
        self._before_edit = before_edit
        self._hooks = hooks
        self._policy = policy
        self._suspended = suspended
        self._checkpoints = checkpoints
        self._open_model = open_model

    async def begin(self, announced: ToolCall, tool: Tool, place: ToolContext, approved: Approved) -> None:
        """Run a call that is announced, or executing already.

        A checkpoint is taken of a file before it is edited, and of none before a subagent, which takes its own.
        """
        call = replace(announced, status=ToolCallStatus.EXECUTING)
        checkpoint_id: str | None = None
        edit = approved.details if isinstance(approved.details, FileDiff) else None
        if self._checkpoints is not None and edit is not None:
            try:
                checkpoint_id = await self._checkpoints.take(self._checkpoint_for(call), [Path(edit.file_path)])
            except CheckpointError as error:
                message = f"{error}. Without a checkpoint nothing is edited, so nothing was."
                await self._turn.emit(*refusal_events(announced, ErrorDetails(message, "checkpoint_failure")))
                return
            await self._turn.emit(Checkpoint(checkpoint_id, call.tool_call_id))
        tried = _files_of_trial(approved, place)
        if self._checkpoints is not None and (tried or isinstance(tool, DelegatingTool)):
            with contextlib.suppress(CheckpointError):  # edits of the subagent find the same fault, and are not made
                before = await self._checkpoints.take(self._checkpoint_for(call), tried)
                await self._turn.emit(Checkpoint(before, call.tool_call_id))
        if self._before_edit is not None and edit is not None:
            await self._before_edit(Path(edit.file_path))
        if announced != call:
            await self._turn.emit(ToolCallUpdate(call))
        running = RunningCall(call, checkpoint_id)
        if tool.kind is not ToolKind.READ:
            running.files_before = await unchanged_files(self._session)
        running.start(tool, call.input_parameters, place, approved, telemetry=self._turn.telemetry)
        await self._follow(running)

    async def go_on(self, call: ToolCall, tool: DelegatingTool, place: ToolContext) -> None:
        """Go on with a call whose work is a task of its own, with the answers that were given to its questions here."""
        await self._turn.emit(*answered_events(self._session, call.tool_call_id))
        asked = await tool.open_questions(call.tool_call_id)
        await self._turn.emit(*withdrawal_events(self._session, call.tool_call_id, asked))
        running = RunningCall(call)
        running.files_before = await unchanged_files(self._session)
        answers = answers_of(self._session, call.tool_call_id)
        running.start(tool, call.input_parameters, place, Approved(), answers, self._turn.telemetry)
        await self._follow(running)

    def is_suspended(self, call_id: str) -> bool:
        """Return whether a call that executes waits in this process."""
        return self._suspended.find(self._session.task_id, call_id) is not None

    async def resume(self, call_id: str) -> None:
        """Go on with a suspended call, unless it still waits for its answer."""
        task_id = self._session.task_id
        found = self._suspended.find(task_id, call_id)
        if found is None:
            return
        asked = self._session.calls.get(found.question_id)
        answer = asked.confirmation if asked is not None else None
        if answer is None and found.question.is_open:
            return
        suspended = self._suspended.take(task_id, call_id) or found
        suspended.running.files_before = {}  # The user may have changed files meanwhile.
        try:
            if asked is not None and asked.call is not None and asked.result is None:
                await self._settle(asked.call, suspended.question, answer)
        except BaseException:
            await suspended.running.stop()
            raise
        await self._follow(suspended.running)

    async def _follow(self, running: RunningCall) -> None:
        """Emit the events of a call until it ends or waits for the user."""
        call = running.call
        is_suspended = False
        try:
            while True:
                match await running.next_event():
                    case Progress(text):
                        await self._turn.emit(ToolCallUpdate(replace(call, live_content=text)))
                    case OpenQuestion() as question:
                        if await self._ask(running, question):
                            is_suspended = True
                            return
                    case ToolWaits(questions):
                        await self._relay(call, questions)
                        return
                    case ToolSucceeded(_, _, media, loads, tokens, seen, wrote) as result:
                        await self._note_edit(running.checkpoint_id)
                        for_model, is_hidden = await self._after_hooks(call, result)
                        changed = await own_changes(running.files_before, result)
                        if loads and self._session.choices.loaded_tools is not None:
                            await self._turn.emit(ToolsLoaded(loads))
                        await self._turn.emit(
                            *withdrawal_events(self._session, call.tool_call_id),
                            *map(_usage, tokens),
                            ToolCallUpdate(_succeeded(call, result)),
                            *_files_seen(() if is_hidden else seen, (*wrote, *changed)),
                            ToolResultRecorded(call.tool_call_id, for_model, is_hidden, () if is_hidden else media),
                        )
                        return
                    case ToolFailed(_, _, media, tokens) as result:
                        for_model, is_hidden = await self._after_hooks(call, result)
                        changed = await own_changes(running.files_before, result)
                        await self._turn.emit(
                            *withdrawal_events(self._session, call.tool_call_id),
                            *map(_usage, tokens),
                            *_files_seen((), changed),
                            ToolCallUpdate(_failed(call, result)),
                            ToolResultRecorded(call.tool_call_id, for_model, True, () if is_hidden else media),
                        )
                        return
        except ToolFailure as failure:
            failed = ToolFailed(
                ErrorDetails(failure.message_for(self._session.user), failure.category), failure.for_model or ""
            )
            for_model, _ = await self._after_hooks(call, failed)
            events = failure_events(call, failure, self._session.user)
            told = [
                replace(event, content=for_model) if isinstance(event, ToolResultRecorded) else event
                for event in events
            ]
            changed = await own_changes(running.files_before, failed)
            events = (*_files_seen((), changed), *told)
            await self._turn.emit(*withdrawal_events(self._session, call.tool_call_id), *events)
        finally:
            if not is_suspended:
                await running.stop()

    async def _after_hooks(self, call: ToolCall, result: ToolResult) -> tuple[str, bool]:
        """Return the text of a result for the model, and whether a hook hides the result itself."""
        if self._hooks is not None:
            return await self._hooks.result(call, result, self._policy)
        return result.for_model or (result.error.message if isinstance(result, ToolFailed) else ""), False

    # --- questions of a call ---

    async def _relay(self, call: ToolCall, questions: Sequence[ToolCall]) -> None:
        """Ask here what the task of a call asks; the call goes on once an answer is there, in whichever process."""
        if not self._policy.may_ask:
            raise ToolFailure(
                f"{call.tool_name}: its task waits for a user, and none can be asked here; answer it in its own task",
                APPROVAL_REQUIRED,
            )
        await self._turn.emit(*relay_events(self._session, call, questions))
        if not any(item.is_waiting for item in self._session.calls.questions_of(call.tool_call_id)):
            raise ToolFailure(f"{call.tool_name}: its task did not take the answer that was given", "internal_error")

    async def _ask(self, running: RunningCall, question: OpenQuestion) -> bool:
        """Ask a call's question; return whether the call now waits for the user."""
        asked, asking = question.question, self._question_call(running.call, question.question)
        if self._is_allowed(asked):
            await self._turn.emit(ToolCallUpdate(asking))
            await self._ask_model(asking, question)
            return False
        if (refusal := self._refusal(asked)) is not None:
            question.answer(NoAnswer(refusal, is_refusal=True))
            await self._turn.emit(*refusal_events(asking, ErrorDetails(refusal, "permission_denied")))
            return False
        request = ConfirmationRequest.of(asked.options, asked.details)
        asking_user = replace(asking, confirmation_request=request)
        await self._turn.emit(ToolCallUpdate(asking_user, asked_in=self._suspended.process))
        self._suspended.suspend(self._session.task_id, SuspendedCall(running, question, asking.tool_call_id))
        return True

    def _question_call(self, call: ToolCall, asked: UserQuestion) -> ToolCall:
        mark = f"{call.tool_call_id}{QUESTION_MARK}"
        number = 1 + sum(call_id.startswith(mark) for call_id in self._session.calls)
        about = {**asked.about, ASKED_IN: call.tool_name}
        return ToolCall(f"{mark}{number}", ToolCallStatus.PENDING, asked.kind, about, description=asked.description)

    def _is_allowed(self, asked: UserQuestion) -> bool:
        """Return whether the mode or an earlier answer allows to put a prompt to the model."""
        if asked.prompt is None:
            return False  # Only the user knows the answer.
        if self._policy.mode is ApprovalMode.YOLO:
            return True
        return asked.always is not None and any(
            option == asked.always
            and call.tool_name == asked.kind
            and call.input_parameters.get("server") == asked.asker
            for call, option in self._session.answered
        )

    def _refusal(self, asked: UserQuestion) -> str | None:
        if self._policy.may_ask:
            return None
        if asked.prompt is not None:
            return (
                "A server's request to the model needs a user's permission, and no user can be asked here, so it "
                "was declined. Allow it with --approval-mode yolo."
            )
        return (
            f"{asked.asker} asked a question that only a user can answer, and no user can be asked here, so it was "
            "declined. Run the task where a user can answer: in a terminal or an editor, or over A2A."
        )

    async def _settle(self, asking: ToolCall, question: OpenQuestion, answer: ToolCallConfirmation | None) -> None:
        """End a question that was answered, or withdrawn, and give the running call its reply."""
        asked, at_rest = question.question, replace(asking, confirmation_request=None)
        if answer is None or not question.is_open:
            await self._turn.emit(*_no_answer_events(at_rest, question.withdrawn or "It is not asked any more"))
            return
        content = answer.file_details.new_content if answer.file_details is not None else None
        chosen = Chosen(answer.selected_option_id, content)
        name = next((option.name for option in asked.options if option.id == chosen.option_id), chosen.option_id)
        if chosen.option_id not in asked.accepting:
            question.answer(chosen)
            await self._turn.emit(*_no_answer_events(at_rest, f"The user chose: {name}"))
            return
        if asked.prompt is not None:
            await self._ask_model(at_rest, question)
            return
        # On the disk before the asker acts upon it.
        await self._turn.emit(ToolCallUpdate(replace(at_rest, status=ToolCallStatus.EXECUTING)))
        question.answer(chosen)
        await self._record_answer(at_rest, ToolOutput(text=f"Answered: {name}"))

    async def _record_answer(self, asking: ToolCall, output: ToolOutput) -> None:
        await self._turn.emit(
            ToolCallUpdate(replace(asking, status=ToolCallStatus.SUCCEEDED, output=output)),
            ToolResultRecorded(asking.tool_call_id, "Answered"),
        )

    async def _ask_model(self, asking: ToolCall, question: OpenQuestion) -> None:
        """Make the request that the user has allowed, and give its answer to the running call."""
        prompt = question.question.prompt
        if prompt is None or self._open_model is None:
            question.answer(NoAnswer("There is no model here"))
            await self._turn.emit(*refusal_events(asking, ErrorDetails("There is no model here", "no_model")))
            return
        await self._turn.emit(ToolCallUpdate(replace(asking, status=ToolCallStatus.EXECUTING)))
        try:
            model = await self._open_model(self._session.choices.model)
            if self._hooks is not None:
                model = self._hooks.model(model, self._open_model)
            done: Done | None = None
            async with aclosing(model.stream(_request(prompt))) as stream:
                async for item in stream:
                    if isinstance(item, Done):
                        done = item
            if done is None:
                raise RuntimeError(f"the {model.provider} model's stream ended without its Done item")
        except (ModelError, RefusedByHookError) as error:
            question.answer(NoAnswer(str(error)))
            reason = f"model_{error.kind}" if isinstance(error, ModelError) else error.reason
            details = ErrorDetails(str(error), reason)
            await self._turn.emit(
                ToolCallUpdate(replace(asking, status=ToolCallStatus.FAILED, error=details)),
                ToolResultRecorded(asking.tool_call_id, details.message, is_error=True),
            )
            return
        except BaseException:
            question.withdraw("The request to the model was cancelled")
            raise
        text, usage = text_of(done.message), done.usage
        tokens = (usage.input, usage.output, usage.cached, usage.thoughts)
        await self._turn.emit(ModelUsed(model.name, *tokens, cost=usage.cost))
        question.answer(ModelAnswer(text, model.name, done.finish is Finish.LENGTH))
        await self._record_answer(asking, ToolOutput(text=text))

    # --- checkpoints ---

    def _checkpoint_for(self, call: ToolCall) -> CheckpointFor:
        session = self._session
        first = next((line.strip() for line in session.prompt.splitlines() if line.strip()), "")
        about = with_ellipsis(first, ABOUT_CHARACTERS)
        return CheckpointFor(
            session.checkpoints_key, session.task_id, call.tool_call_id, Path(session.workspace), about
        )

    async def _note_edit(self, checkpoint_id: str | None) -> None:
        if self._checkpoints is None or checkpoint_id is None:
            return
        # Only needed to see later whether another program has changed the file; the edit itself is done.
        with contextlib.suppress(CheckpointError):
            await self._checkpoints.edited(checkpoint_id)


def _files_of_trial(approved: Approved, place: ToolContext) -> list[Path]:
    """Return the files that the changes of a tried command replace; none for any other call."""
    trial = approved.details.trial if isinstance(approved.details, ExecuteDetails) else None
    return [] if trial is None or not trial.id else [place.workspace.root / path for path in trial.files]


def _succeeded(call: ToolCall, result: ToolSucceeded) -> ToolCall:
    return replace(call, status=ToolCallStatus.SUCCEEDED, output=result.output, changed_files=result.changed or None)


def _failed(call: ToolCall, result: ToolFailed) -> ToolCall:
    return replace(call, status=ToolCallStatus.FAILED, error=result.error, changed_files=result.changed or None)


def _files_seen(shown: Sequence[SeenText], own: Sequence[SeenText]) -> Sequence[AgentEvent]:
    """Return the events that the model is shown files, and that its call has written or changed some."""
    events = (FilesSeen(tuple(own), is_own=True), FilesSeen(tuple(shown)))
    return tuple(event for event in events if event.files)


def _usage(tokens: ModelTokens) -> ModelUsed:
    return ModelUsed(
        *(tokens.model, tokens.input, tokens.output, tokens.cached, tokens.thoughts, tokens.requests),
        cost=tokens.cost,
        unpriced=tokens.unpriced,
        subtask=tokens.subtask,
    )


def _request(prompt: ModelPrompt) -> ModelRequest:
    messages = tuple(Message(item.role, (Text(item.text), *item.media)) for item in prompt.messages)
    return ModelRequest(prompt.system, messages, max_output_tokens=prompt.maximum_tokens)


def _no_answer_events(question: ToolCall, reason: str) -> Sequence[AgentEvent]:
    error = ErrorDetails(reason, CANCELLED_CATEGORY)
    ended = replace(question, status=ToolCallStatus.CANCELLED, error=error, confirmation_request=None)
    return (ToolCallUpdate(ended), ToolResultRecorded(question.tool_call_id, reason, is_error=True))
