"""Settles the open tool calls of a session: announces, decides, runs, and records what the model is told.

Calls are settled in the order in which the model wrote them. Those that need a person are all announced at once; what
follows such a call and needs no permission waits for it, since the model wrote it to come after. A call with an effect
that was interrupted is never run again: its outcome is not known, and that is what is said.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never, cast

from isthmus.agent.approval import CANCEL, Allow, Ask, Decision, Deny, Grant, decide, grants_of, is_guarded
from isthmus.agent.options import AgentOptions
from isthmus.agent.session import OpenCall, Session
from isthmus.events import (
    AgentEvent,
    ConfirmationDetails,
    ConfirmationRequest,
    ErrorDetails,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
    ToolCallUpdate,
    ToolResultRecorded,
)
from isthmus.tools.base import (
    Approved,
    LiveContent,
    Tool,
    ToolContext,
    ToolFailed,
    ToolItem,
    ToolKind,
    ToolSet,
    ToolSucceeded,
)
from isthmus.tools.failure import ToolFailure
from isthmus.tools.workspace import Workspace

INTERRUPTED = "interrupted"
"""The error type of a call whose outcome is not known after a crash."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A call that may be decided: its tool, and what it would do."""

    tool: Tool
    context: ToolContext
    proposal: ConfirmationDetails | None
    announced: ToolCall


class CallRunner:
    """Runs the tool calls of one session. Events it yields are applied to the session already."""

    def __init__(self, tools: ToolSet, options: AgentOptions, session: Session) -> None:
        self._tools = tools
        self._options = options
        self._session = session

    async def settle(self) -> AsyncGenerator[AgentEvent, None]:
        """Settle every open call that can be; afterwards ``session.waiting`` says what a person must decide."""
        session = self._session
        for event in _given_up_calls(session):
            yield session.apply(event)
        asked_paths: set[str] = set()
        for request_id in [item.request.id for item in session.unsettled]:
            item = session.calls[request_id]
            blocked = bool(session.waiting)
            async with aclosing(self._settle_one(item, blocked, asked_paths)) as events:
                async for event in events:
                    yield session.apply(event)
            proposal = session.calls[request_id].proposal
            if session.calls[request_id].is_waiting and isinstance(proposal, FileDiff):
                asked_paths.add(proposal.file_path)

    async def _settle_one(
        self, item: OpenCall, blocked: bool, asked_paths: set[str]
    ) -> AsyncGenerator[AgentEvent, None]:
        call = item.call
        tool = self._tools.tools.get(item.request.name)
        if call is not None and call.status.is_final:
            # The result was on its way to the journal when the process ended.
            yield _result_of(call)
            return
        if (
            call is not None
            and call.status is ToolCallStatus.EXECUTING
            and (tool is None or tool.kind is not ToolKind.READ)
        ):
            for event in _interrupted(call):
                yield event
            return
        if item.is_waiting or item.confirmation is not None:
            async with aclosing(self._settle_asked(item, tool)) as events:
                async for event in events:
                    yield event
            return
        if tool is None or item.request.invalid is not None:
            for event in _refused(_announce(item, ""), _why_not_callable(item, self._tools)):
                yield event
            return
        try:
            ready = await self._propose(item, tool)
        except ToolFailure as failure:
            for event in _failed(_announce(item, _description(tool, item)), failure):
                yield event
            return
        if isinstance(ready.proposal, FileDiff) and ready.proposal.file_path in asked_paths:
            return  # An earlier edit of this file is not decided: this one is proposed on what becomes of it.
        decision = self._decide(item, tool, ready.proposal)
        if blocked and isinstance(decision, Allow):
            return
        async with aclosing(self._carry_out(ready, decision)) as events:
            async for event in events:
                yield event

    async def _carry_out(self, ready: _Ready, decision: Decision) -> AsyncGenerator[AgentEvent, None]:
        match decision:
            case Ask(options):
                request = _with_details(ConfirmationRequest(options), ready)
                yield ToolCallUpdate(replace(ready.announced, confirmation_request=request))
            case Deny(reason):
                for event in _refused(ready.announced, ErrorDetails(reason, "permission_denied")):
                    yield event
            case Allow():
                yield ToolCallUpdate(ready.announced)
                async with aclosing(self._execute(ready, Approved(ready.proposal))) as events:
                    async for event in events:
                        yield event
            case _:
                assert_never(decision)

    async def _settle_asked(self, item: OpenCall, tool: Tool | None) -> AsyncGenerator[AgentEvent, None]:
        """A call that was announced with a question: run it when it was answered, or granted since."""
        call, confirmation = item.call, item.confirmation
        if call is None:
            return
        if confirmation is not None and confirmation.selected_option_id == CANCEL:
            yield ToolCallUpdate(_cancelled(call, "Rejected by the user"))
            yield ToolResultRecorded(call.tool_call_id, "The person rejected this call; it was not run.", is_error=True)
            return
        if tool is None:
            for event in _refused(replace(call, confirmation_request=None), _why_not_callable(item, self._tools)):
                yield event
            return
        if confirmation is None and not isinstance(self._decide(item, tool, item.proposal), Allow):
            return
        modified = confirmation.file_details if confirmation is not None else None
        approved = Approved(item.proposal, modified.new_content if modified is not None else None)
        ready = _Ready(tool, self._context(item), item.proposal, replace(call, confirmation_request=None))
        async with aclosing(self._execute(ready, approved)) as events:
            async for event in events:
                yield event

    async def _propose(self, item: OpenCall, tool: Tool) -> _Ready:
        context = self._context(item)
        arguments = item.request.arguments
        proposal = await tool.propose(arguments, context)
        return _Ready(tool, context, proposal, _announce(item, tool.describe(arguments)))

    def _context(self, item: OpenCall) -> ToolContext:
        workspace = Path(self._session.workspace)
        return ToolContext(
            Workspace(workspace), item.request.id, self._options.output_folder, self._options.environment
        )

    def _decide(self, item: OpenCall, tool: Tool, proposal: ConfirmationDetails | None) -> Decision:
        policy = self._options.policy
        granted: set[Grant] = set(policy.grants)
        for call, option in self._session.answered:
            if (answered := self._tools.tools.get(call.tool_name)) is not None:
                granted |= grants_of(option, call.tool_name, answered.kind, call.input_parameters)
        guarded = isinstance(proposal, FileDiff) and is_guarded(Path(proposal.file_path))
        now = replace(policy, grants=frozenset(granted))
        return decide(now, tool.name, tool.kind, item.request.arguments, is_guarded=guarded)

    async def _execute(self, ready: _Ready, approved: Approved) -> AsyncGenerator[AgentEvent, None]:
        call = replace(ready.announced, status=ToolCallStatus.EXECUTING)
        yield ToolCallUpdate(call)
        try:
            # Tools are async generators, so that leaving early stops what they run.
            running = cast("AsyncGenerator[ToolItem, None]", self._start(ready, approved))
            async with aclosing(running):
                async for item in running:
                    match item:
                        case LiveContent(text):
                            yield ToolCallUpdate(replace(call, live_content=text))
                        case ToolSucceeded(output, for_model):
                            yield ToolCallUpdate(replace(call, status=ToolCallStatus.SUCCEEDED, output=output))
                            yield ToolResultRecorded(call.tool_call_id, for_model)
                            return
                        case ToolFailed(error, for_model):
                            yield ToolCallUpdate(replace(call, status=ToolCallStatus.FAILED, error=error))
                            yield ToolResultRecorded(call.tool_call_id, for_model or error.message, is_error=True)
                            return
                        case _:
                            assert_never(item)
        except ToolFailure as failure:
            for event in _failed(call, failure):
                yield event
            return
        raise RuntimeError(f"the tool {ready.tool.name} ended without a result")

    def _start(self, ready: _Ready, approved: Approved) -> AsyncIterator[ToolItem]:
        return ready.tool.run(ready.announced.input_parameters, ready.context, approved)


def _announce(item: OpenCall, description: str) -> ToolCall:
    request = item.request
    return ToolCall(
        request.id, ToolCallStatus.PENDING, request.name, request.arguments, description=description or None
    )


def _description(tool: Tool, item: OpenCall) -> str:
    """What a call that cannot be made was to do; empty when its arguments do not even say that."""
    try:
        return tool.describe(item.request.arguments)
    except ToolFailure:
        return ""


def _with_details(request: ConfirmationRequest, ready: _Ready) -> ConfirmationRequest:
    match ready.proposal:
        case ExecuteDetails():
            return replace(request, execute_details=ready.proposal)
        case FileDiff():
            return replace(request, file_edit_details=ready.proposal)
        case McpDetails():
            return replace(request, mcp_details=ready.proposal)
        case GenericDetails():
            return replace(request, generic_details=ready.proposal)
        case None:
            description = ready.announced.description or f"Run {ready.tool.name}"
            return replace(request, generic_details=GenericDetails(description))


def _why_not_callable(item: OpenCall, tools: ToolSet) -> ErrorDetails:
    if item.request.invalid is not None:
        message = f"The arguments of {item.request.name} are not a JSON object: {item.request.invalid}"
        return ErrorDetails(message, "invalid_arguments")
    return ErrorDetails(
        f"There is no tool {item.request.name!r}. The tools are: {', '.join(tools.tools)}.", "unknown_tool"
    )


def _refused(announced: ToolCall, error: ErrorDetails) -> tuple[AgentEvent, ...]:
    """A call that never ran: announced, failed, and said to the model."""
    return (
        ToolCallUpdate(announced),
        ToolCallUpdate(replace(announced, status=ToolCallStatus.FAILED, error=error)),
        ToolResultRecorded(announced.tool_call_id, error.message, is_error=True),
    )


def _failed(call: ToolCall, failure: ToolFailure) -> tuple[AgentEvent, ...]:
    error = ErrorDetails(str(failure), failure.category)
    if call.status is ToolCallStatus.PENDING:
        return _refused(call, error)
    return (
        ToolCallUpdate(replace(call, status=ToolCallStatus.FAILED, error=error, live_content=None)),
        ToolResultRecorded(call.tool_call_id, error.message, is_error=True),
    )


def _cancelled(call: ToolCall, why: str) -> ToolCall:
    return _ended(call, ToolCallStatus.CANCELLED, ErrorDetails(why, "cancelled"))


def _ended(call: ToolCall, status: ToolCallStatus, error: ErrorDetails) -> ToolCall:
    return replace(call, status=status, error=error, confirmation_request=None, live_content=None, output=None)


def _interrupted(call: ToolCall) -> tuple[AgentEvent, ...]:
    message = (
        f"{call.tool_name} was interrupted when the agent's process ended; its outcome is not known. "
        "It was not run again: look at what it did before you go on."
    )
    failed = replace(call, status=ToolCallStatus.FAILED, error=ErrorDetails(message, INTERRUPTED), live_content=None)
    return (ToolCallUpdate(failed), ToolResultRecorded(call.tool_call_id, message, is_error=True))


def _result_of(call: ToolCall) -> ToolResultRecorded:
    if call.error is not None:
        return ToolResultRecorded(call.tool_call_id, call.error.message, is_error=True)
    output = call.output
    if output is not None and output.diff is not None:
        text = f"Wrote {output.diff.file_path}. Its content is now:\n{output.diff.new_content}"
    else:
        text = (output.text if output is not None else None) or "The call succeeded."
    return ToolResultRecorded(call.tool_call_id, text)


def _given_up_calls(session: Session) -> tuple[ToolCallUpdate, ...]:
    why = "Not run: a new message came instead of an answer"
    return tuple(ToolCallUpdate(_cancelled(call, why)) for call in session.given_up)


def cancelled_calls(session: Session) -> tuple[AgentEvent, ...]:
    """What is recorded for the open calls of a session whose task is cancelled."""
    error = ErrorDetails("Cancelled by the user", "cancelled")
    return _closed_calls(session, ToolCallStatus.CANCELLED, error, "The person cancelled the turn.")


def failed_calls(session: Session, why: str) -> tuple[AgentEvent, ...]:
    """What is recorded for the open calls of a session whose task failed by a bug."""
    return _closed_calls(session, ToolCallStatus.FAILED, ErrorDetails(why, "internal_error"), why)


def _closed_calls(
    session: Session, status: ToolCallStatus, error: ErrorDetails, for_model: str
) -> tuple[AgentEvent, ...]:
    events: list[AgentEvent] = [*_given_up_calls(session)]
    for item in session.unsettled:
        call = item.call or _announce(item, "")
        if not call.status.is_final:
            events.append(ToolCallUpdate(_ended(call, status, error)))
        events.append(ToolResultRecorded(call.tool_call_id, for_model, is_error=True))
    return tuple(events)
