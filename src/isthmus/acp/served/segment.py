"""One segment of a task whose agent speaks ACP: passes answers on, emits what the agent sends, up to a question or end.

Not here: beginning turns, see :mod:`isthmus.acp.served.agent`.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from typing_extensions import override

from isthmus.acp.host.agent_link import AgentLostError, LoginRequiredError
from isthmus.acp.host.agent_question import AgentQuestion
from isthmus.acp.host.agent_session import AgentSession
from isthmus.acp.host.edits import UserEdit
from isthmus.acp.host.files import Expected, FileRefusedError, SessionFiles
from isthmus.acp.host.form_question import FormQuestion
from isthmus.acp.host.prompt_turn import Permission, PromptEnd, PromptTurn
from isthmus.acp.host.usage import StatedUsage
from isthmus.acp.v1.client_requests import ElicitationResponse, Selected
from isthmus.acp.v1.sessions import StopReason
from isthmus.agent.calls.running_call import OpenQuestion, RunningCall
from isthmus.agent.calls.suspended_calls import SuspendedCall, SuspendedCalls
from isthmus.agent.session.interruption import PROCESS_ENDED, begins_sentence
from isthmus.agent.session.session import Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import FileDiff, GenericDetails, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, StateChange, TaskState, ToolCallUpdate
from isthmus.forms.form import FormError
from isthmus.record import record
from isthmus.tools.port.user_question import UserQuestion

AGENT_LOST = "agent_lost"
"""Reason of a task that failed because its agent's process ended."""
LOST_QUESTION = "{} while this question was open, so no answer reached the agent; nothing was done."
"""Text that begins with the reason why the work broke off."""
_LOST_QUESTION = LOST_QUESTION.format(begins_sentence(PROCESS_ENDED))
NO_RESULT = "The agent ended its turn without a result of this call."


class HeldTurn(RunningCall):
    """A turn that waits in memory for the answer to one of its questions."""

    def __init__(self, call: ToolCall, work: "Work") -> None:
        super().__init__(call)
        self._work = work

    @override
    async def stop(self) -> None:
        self._work.end()


@record
class Work:
    """A turn of an agent, and the session in which it works."""

    session: AgentSession
    turn: PromptTurn
    files: SessionFiles
    on_end: Callable[[], None]

    def end(self) -> None:
        """Let go of the turn; one that has not ended is cancelled, since its task does not go on."""
        self.session.abandon(self.turn)
        self.on_end()


class AcpSegment:
    """A run of a task on a turn; ``keep_notes`` stores what the agent must be told with its next prompt.

    ``keep_usage`` stores what it stated about the context and the cost of its session.
    """

    def __init__(
        self,
        task: AgentTurn,
        work: Work,
        suspended: SuspendedCalls,
        keep_notes: Callable[[Sequence[str]], Awaitable[None]],
        keep_usage: Callable[[StatedUsage], Awaitable[None]],
    ) -> None:
        self._keep_notes = keep_notes
        self._keep_usage = keep_usage
        self._task = task
        self._work = work
        self._turn = work.turn
        self._calls = work.turn.reader.calls
        self._suspended = suspended

    async def pass_on_answers(self) -> None:
        """Tell the agent what users have answered since the last segment."""
        session = self._task.session
        for call_id, permission in list(self._turn.open.items()):
            held, item = self._suspended.find(session.task_id, call_id), session.calls.get(call_id)
            if item is not None and item.confirmation is not None:
                await self._forget_question(permission)
                await self._pass_on(permission, item.confirmation)
            elif permission.withdrawn or (held is not None and not held.question.is_open):
                await self._forget_question(permission)
                permission.refuse()
                reason = permission.withdrawn or (held.question.withdrawn if held is not None else "")
                status = ToolCallStatus.CANCELLED
                if permission.is_lost:
                    status, reason = ToolCallStatus.FAILED, _LOST_QUESTION
                await self._task.emit(ToolCallUpdate(self._calls.close(call_id, status, reason)))

    async def follow(self) -> StateChange:
        """Emit what the agent sends, and return the state in which the segment ends."""
        limits = self._work.session.limits
        while True:
            if notes := self._turn.take_notes():
                await self._keep_notes(notes)
            seconds = None
            if self._turn.open:
                seconds = limits.working_seconds if self._calls.is_working else limits.gather_seconds
            match await self._turn.next(seconds):
                case None:
                    if self._turn.open:
                        self._hold()
                        return StateChange(TaskState.INPUT_REQUIRED)
                case PromptEnd() as end:
                    return await self._end(end)
                case AgentQuestion() as question:
                    await self._ask(question)
                case update:
                    for event in self._turn.reader.take(update):
                        await self._emit(event)

    async def _emit(self, event: AgentEvent) -> None:
        if isinstance(event, ToolCallUpdate) and event.tool_call.status.is_final:
            call = event.tool_call
            if (permission := self._turn.open.get(call.tool_call_id)) is not None:
                await self._forget_question(permission)
                permission.refuse()
            event = ToolCallUpdate(self._with_reason(await self._with_edit_settled(call)))
        await self._task.emit(event)

    async def _ask(self, question: AgentQuestion[Any]) -> None:
        if question.withdrawn:
            return
        match question:
            case Permission():
                *closed, asked = self._calls.ask(question.request.tool_call, question.request.options)
            case FormQuestion():
                closed, asked = [], self._calls.ask_form(question)
            case _:
                raise TypeError(question)
        question.call_id = asked.tool_call_id
        self._turn.open[asked.tool_call_id] = question
        await self._task.emit(*self._turn.reader.interrupt(), *(ToolCallUpdate(call) for call in closed))
        await self._task.emit(ToolCallUpdate(asked, asked_in=self._suspended.process))

    async def _pass_on(self, question: AgentQuestion[Any], confirmation: ToolCallConfirmation) -> None:
        call_id = question.call_id
        if question.withdrawn:
            reason = _LOST_QUESTION if question.is_lost else question.withdrawn
            await self._task.emit(ToolCallUpdate(self._calls.close(call_id, ToolCallStatus.FAILED, reason)))
        elif isinstance(question, FormQuestion):
            await self._fill_in(question, confirmation)
        elif isinstance(question, Permission):
            await self._permit(question, confirmation)

    async def _fill_in(self, question: FormQuestion, confirmation: ToolCallConfirmation) -> None:
        """Pass on what the user filled in; ask again if it does not fit the form."""
        call_id, option = question.call_id, confirmation.selected_option_id
        if question.refuses(option):
            closed = self._calls.close(call_id, ToolCallStatus.CANCELLED, "Declined by the user")
            await self._task.emit(ToolCallUpdate(closed))
            question.answer(ElicitationResponse(option))
            return
        details = confirmation.file_details
        document = details.new_content if details is not None else None
        try:
            content = question.content(option, document)
        except FormError as error:
            question.problem, question.last = str(error), document or ""
            closed = self._calls.close(call_id, ToolCallStatus.FAILED, f"Not sent: {error}")
            await self._task.emit(ToolCallUpdate(closed))
            await self._ask(question)
            return
        await self._task.emit(ToolCallUpdate(self._calls.answered(call_id)))
        question.answer(ElicitationResponse("accept", dict(content)))

    async def _permit(self, permission: Permission, confirmation: ToolCallConfirmation) -> None:
        call_id, option = permission.call_id, confirmation.selected_option_id
        if permission.refuses(option):
            closed = self._calls.close(call_id, ToolCallStatus.CANCELLED, "Rejected by the user")
            await self._task.emit(ToolCallUpdate(closed))
            permission.answer(Selected(option))
            return
        edit = _edit_of(self._calls.proposal(call_id), confirmation)
        if edit is not None and self._work.session.launch.agent.writes_by_itself:
            await self._write_for_agent(permission, edit)
            return
        if edit is not None:
            self._turn.expect_edit(edit)
        await self._task.emit(ToolCallUpdate(self._calls.allow(call_id, edit)))
        permission.answer(Selected(option))

    async def _write_for_agent(self, permission: Permission, edit: UserEdit) -> None:
        """Write the user's text, and refuse the agent's: it would write its own text by itself."""
        try:
            await self._work.files.write(edit.path, edit.text, Expected(edit.old_text))
        except FileRefusedError as error:
            call = self._calls.close(permission.call_id, ToolCallStatus.FAILED, str(error))
        else:
            self._turn.notes.append(edit.note)
            call = self._calls.written(permission.call_id, edit)
        await self._task.emit(ToolCallUpdate(call))
        permission.refuse()

    async def _with_edit_settled(self, call: ToolCall) -> ToolCall:
        """Return an ended call after the user's text was written, if the agent did not write through us."""
        edit = self._calls.edit_of(call.tool_call_id)
        if edit is None or not self._turn.forget_edit(edit) or call.status is not ToolCallStatus.SUCCEEDED:
            return call
        try:
            await self._work.files.write(edit.path, edit.text, Expected(edit.proposed))
        except FileRefusedError as error:
            reason = f"Your change of {edit.path} could not be written: {error}"
            return self._calls.close(call.tool_call_id, ToolCallStatus.FAILED, reason)
        self._turn.notes.append(edit.note)
        return call

    def _with_reason(self, call: ToolCall) -> ToolCall:
        """Return an ended call; one that failed because we did not write its file says so."""
        if call.status is not ToolCallStatus.FAILED:
            return call
        is_same, paths = self._work.files.is_same, self._calls.paths(call.tool_call_id)
        for path in list(self._turn.refused):
            if any(is_same(path, item) for item in paths):
                return self._calls.explain(call.tool_call_id, self._turn.refused.pop(path))
        return call

    def _hold(self) -> None:
        task_id = self._task.session.task_id
        for call_id, permission in self._turn.open.items():
            if self._suspended.find(task_id, call_id) is None and (call := self._call(call_id)) is not None:
                title = self._work.session.launch.agent.title
                about = UserQuestion("permission", title, "", GenericDetails(""), (), frozenset(), {})
                question = OpenQuestion(about)
                permission.on_withdrawn = question.withdraw
                if permission.withdrawn:
                    question.withdraw(permission.withdrawn)
                self._suspended.suspend(task_id, SuspendedCall(HeldTurn(call, self._work), question, call_id))

    def _call(self, call_id: str) -> ToolCall | None:
        item = self._task.session.calls.get(call_id)
        return item.call if item is not None else None

    async def _forget_question(self, permission: AgentQuestion[Any]) -> None:
        self._turn.open.pop(permission.call_id, None)
        permission.on_withdrawn = None
        self._suspended.take(self._task.session.task_id, permission.call_id)

    async def _end(self, end: PromptEnd) -> StateChange:
        await self._task.emit(*self._turn.reader.flush(), *(() if self._turn.reader.has_tokens else end.used))
        if (usage := self._work.session.usage) is not None:
            await self._keep_usage(usage)
        state = state_of(end, self._work.session.launch.agent.login)
        for permission in list(self._turn.open.values()):
            await self._forget_question(permission)
        is_cancelled = state.state is TaskState.CANCELED
        reason = state.error or ("Cancelled" if is_cancelled else NO_RESULT)
        status = ToolCallStatus.CANCELLED if is_cancelled else ToolCallStatus.FAILED
        for call in open_calls(self._task.session):
            text = _LOST_QUESTION if call.confirmation_request is not None and state.reason == AGENT_LOST else reason
            if self._calls.is_open(call.tool_call_id):
                await self._task.emit(ToolCallUpdate(self._calls.close(call.tool_call_id, status, text)))
        return state


def open_calls(session: Session) -> tuple[ToolCall, ...]:
    """Return the calls of a session's task that have not ended."""
    calls = [item.call for item in session.calls.unsettled if item.call is not None]
    return tuple(call for call in calls if not call.status.is_final)


def _edit_of(proposal: FileDiff | None, confirmation: ToolCallConfirmation) -> UserEdit | None:
    """Return the user's change of a proposal; None if it was accepted as it is."""
    details = confirmation.file_details
    if proposal is None or details is None or details.new_content == proposal.new_content:
        return None
    return UserEdit(proposal.file_path, proposal.old_content, proposal.new_content, details.new_content)


def state_of(end: PromptEnd, login: str) -> StateChange:
    """Return the state of a task after the end of its turn; ``login`` is advice to a user who is not logged in."""
    match end.error:
        case None:
            pass
        case LoginRequiredError():
            return login_required(end.error, login)
        case AgentLostError():
            text = f"{_sentence(str(end.error))} Send another message in this conversation to go on."
            return StateChange(TaskState.FAILED, text, AGENT_LOST)
        case IsthmusError():
            return StateChange(TaskState.FAILED, str(end.error), "agent_error")
    match end.reason:
        case StopReason.CANCELLED:
            return StateChange(TaskState.CANCELED)
        case StopReason.REFUSAL:
            return StateChange(TaskState.FAILED, "The agent refused to go on. Rephrase the request.", "refusal")
        case StopReason.MAX_TOKENS:
            text = "The agent's answer was cut at its output limit. Send a message to continue."
            return StateChange(TaskState.FAILED, text, "output_limit")
        case StopReason.MAX_TURN_REQUESTS:
            text = "The agent needed more requests than it may make for one prompt. Send a message to continue."
            return StateChange(TaskState.FAILED, text, "turn_limit")
        case _:
            return StateChange(TaskState.COMPLETED)


def login_required(error: LoginRequiredError, login: str) -> StateChange:
    """Return the state of a task whose agent has no login."""
    offered = f" The agent's ways to log in: {', '.join(error.methods)}." if error.methods else ""
    text = f"{_sentence(str(error))}{offered} {login} Then send the message again."
    return StateChange(TaskState.AUTH_REQUIRED, text, "auth_required")


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
