"""The events of tool calls that end without their tool: refused, failed, cancelled, given up, interrupted.

Pure. Not here: deciding and running, see :mod:`isthmus.agent.calls.runner`.
"""

from collections.abc import Sequence
from dataclasses import replace

from isthmus.agent.session.interruption import begins_sentence
from isthmus.agent.session.open_call import OpenCall
from isthmus.agent.session.session import Session
from isthmus.development_tool import ErrorDetails, McpDetails, ToolCall, ToolCallStatus
from isthmus.events import AgentEvent, ToolCallUpdate
from isthmus.internal_events import ToolResultRecorded
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import ToolSet

INTERRUPTED = "interrupted"
"""The error type of a call whose outcome is not known after a crash."""
CANCELLED_CATEGORY = "cancelled"
"""The error type of a call that a user, or what came in between, ended."""
NAMED_TOOLS = 50
"""Maximum number of tools named to a model after a request for an unknown one; servers may have hundreds."""


def announced_call(item: OpenCall, description: str) -> ToolCall:
    """Return the call that the model asks for, as it is first shown to clients."""
    request = item.request
    return ToolCall(
        request.id, ToolCallStatus.PENDING, request.name, request.arguments, description=description or None
    )


def refusal_events(announced: ToolCall, error: ErrorDetails, for_model: str | None = None) -> tuple[AgentEvent, ...]:
    """Return the events of a call that never ran; the model reads the error's text unless ``for_model`` is given."""
    return (
        ToolCallUpdate(announced),
        ToolCallUpdate(replace(announced, status=ToolCallStatus.FAILED, error=error)),
        ToolResultRecorded(announced.tool_call_id, for_model or error.message, is_error=True),
    )


def failure_events(call: ToolCall, failure: ToolFailure, user: str) -> tuple[AgentEvent, ...]:
    """Return the events of a call that its tool gave up, before it began or while it ran.

    ``user`` owns the session.
    """
    error = ErrorDetails(failure.message_for(user), failure.category)
    if call.status is ToolCallStatus.PENDING:
        return refusal_events(call, error, failure.for_model)
    return (
        ToolCallUpdate(replace(call, status=ToolCallStatus.FAILED, error=error, live_content=None)),
        ToolResultRecorded(call.tool_call_id, failure.for_model or error.message, is_error=True),
    )


def cancelled_call(call: ToolCall, reason: str) -> ToolCall:
    """Return the call as cancelled: it is not run, or not any further."""
    return _end(call, ToolCallStatus.CANCELLED, ErrorDetails(reason, CANCELLED_CATEGORY))


def _end(call: ToolCall, status: ToolCallStatus, error: ErrorDetails) -> ToolCall:
    return replace(call, status=status, error=error, confirmation_request=None, live_content=None, output=None)


def interruption_events(call: ToolCall, reason: str) -> tuple[AgentEvent, ...]:
    """Return the events for a call with an effect that ran when the work broke off; ``reason`` is a part of a sentence.

    The same holds for the other functions with a ``reason``; see :mod:`isthmus.agent.session.interruption`.
    """
    message = (
        f"{call.tool_name} was interrupted when {reason}; its outcome is not known. "
        "It was not run again: look at what it did before you go on."
    )
    ended = replace(call, status=ToolCallStatus.FAILED, error=ErrorDetails(message, INTERRUPTED), live_content=None)
    return (ToolCallUpdate(ended), ToolResultRecorded(call.tool_call_id, message, is_error=True))


def second_interruption_events(call: ToolCall, reason: str) -> tuple[AgentEvent, ...]:
    """Return the events for a call without an effect during which the work broke off twice, at last for a reason."""
    message = (
        f"{call.tool_name} was under way twice when the work on the task broke off, the second time because {reason}. "
        "It is not run a third time: use other arguments or another tool."
    )
    ended = replace(call, status=ToolCallStatus.FAILED, error=ErrorDetails(message, INTERRUPTED), live_content=None)
    return (ToolCallUpdate(ended), ToolResultRecorded(call.tool_call_id, message, is_error=True))


def lost_questions(session: Session, call_id: str, reason: str) -> tuple[AgentEvent, ...]:
    """Return the events for the open questions of a call that no process works on any more."""
    reason = f"{begins_sentence(reason)} while the question was open; an answer was not passed on"
    events: list[AgentEvent] = []
    for item in session.calls.questions_of(call_id):
        if item.call is not None and item.result is None:
            events.append(ToolCallUpdate(cancelled_call(item.call, reason)))
            events.append(ToolResultRecorded(item.request.id, reason, is_error=True))
    return tuple(events)


def result_of(call: ToolCall) -> ToolResultRecorded:
    """Return the result of an ended call for the model."""
    if call.error is not None:
        return ToolResultRecorded(call.tool_call_id, call.error.message, is_error=True)
    output = call.output
    if output is not None and output.diff is not None:
        text = f"Wrote {output.diff.file_path}. Its content is now:\n{output.diff.new_content}"
    else:
        text = (output.text if output is not None else None) or "The call succeeded."
    return ToolResultRecorded(call.tool_call_id, text)


def call_problem(item: OpenCall, tools: ToolSet, offered: Sequence[str]) -> ErrorDetails:
    """Return the reason why the model's request cannot become a call; ``offered`` are the names that it may use."""
    if item.request.invalid is not None:
        message = f"The call of {item.request.name} cannot be made: {item.request.invalid}"
        return ErrorDetails(message, "invalid_arguments")
    gone = item.proposal
    if isinstance(gone, McpDetails):
        message = (
            f"The MCP server {gone.server_name!r} does not offer {gone.tool_name} any more, or is not connected; "
            "nothing was called. /mcp shows its state."
        )
        return ErrorDetails(message, "unknown_tool")
    if (refusal := tools.refusals.get(item.request.name)) is not None:
        return ErrorDetails(f"{item.request.name} is not allowed: {refusal}", "permission_denied")
    names = ", ".join(offered[:NAMED_TOOLS])
    more = f" and {len(offered) - NAMED_TOOLS} more" if len(offered) > NAMED_TOOLS else ""
    return ErrorDetails(f"There is no tool {item.request.name!r}. The tools are: {names}{more}.", "unknown_tool")


def given_up_calls(session: Session) -> tuple[ToolCallUpdate, ...]:
    """Return the events for calls that waited when a message came instead of an answer."""
    came = "a new message came instead of an answer"
    return tuple(
        ToolCallUpdate(
            cancelled_call(call, f"{'Stopped' if call.status is ToolCallStatus.EXECUTING else 'Not run'}: {came}")
        )
        for call in session.calls.given_up
    )


def cancelled_calls(session: Session) -> tuple[AgentEvent, ...]:
    """Return the events for the open calls of a session whose task is cancelled."""
    error = ErrorDetails("Cancelled by the user", CANCELLED_CATEGORY)
    return _closed_calls(session, ToolCallStatus.CANCELLED, error, "The user cancelled the turn.")


def failed_calls(session: Session, reason: str) -> tuple[AgentEvent, ...]:
    """Return the events for the open calls of a session whose task failed by a bug."""
    return _closed_calls(session, ToolCallStatus.FAILED, ErrorDetails(reason, "internal_error"), reason)


def _closed_calls(
    session: Session, status: ToolCallStatus, error: ErrorDetails, for_model: str
) -> tuple[AgentEvent, ...]:
    events: list[AgentEvent] = [*given_up_calls(session)]
    for item in session.calls.unsettled:
        call = item.call or announced_call(item, "")
        if not call.status.is_final:
            events.append(ToolCallUpdate(_end(call, status, error)))
        events.append(ToolResultRecorded(call.tool_call_id, for_model, is_error=True))
    return tuple(events)
