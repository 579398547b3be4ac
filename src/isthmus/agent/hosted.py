"""Runs the agent of another author: adds what its events may leave out, and checks them.

The author writes an async generator of events; each event is emitted before the generator goes on. Texts get ids here,
and the task its first and last state. A call that was EXECUTING when the work broke off is closed as interrupted and
never run again. How the agent is served is in ``isthmus.a2a.hosting``.
"""

import inspect
import json
import secrets
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from types import AsyncGeneratorType
from typing import Protocol, runtime_checkable

from isthmus.agent.approval.grants import CANCEL, PROCEED_ONCE
from isthmus.agent.calls.events import failed_calls, interruption_events
from isthmus.agent.session.session import Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import (
    AgentSettings,
    ConfirmationDetails,
    ConfirmationOption,
    ConfirmationRequest,
    SlashCommand,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
)
from isthmus.encoding.codec import JsonObject
from isthmus.errors import DecodeError, IsthmusError
from isthmus.events import (
    EVENT_TYPES,
    AgentEvent,
    AgentMessage,
    StateChange,
    TaskState,
    TextContent,
    ToolCallUpdate,
    event_from_json,
    event_to_json,
)
from isthmus.internal_events import ToolResultRecorded
from isthmus.text.visible import with_ellipsis

SHOWN_CHARACTERS = 200
"""Maximum number of characters of a wrong value that an error shows."""
OPTIONS = (
    ConfirmationOption(PROCEED_ONCE, "Allow once"),
    ConfirmationOption(CANCEL, "Reject", "Do not run it and tell the agent"),
)


class AgentFailedError(IsthmusError):
    """Raised when an agent failed: the text is for its client, the cause for the log."""


class WrongAgentError(IsthmusError):
    """An agent is not written as its port asks for; the text is for its author, and clients do not get it."""


class AgentPort(Protocol):
    """The agent that an author writes.

    ``run`` is called after each message and after each answer of a user. The call may come in another process than the
    one before, so everything that it knows is in ``session``. It returns after the work, or after a question.
    """

    def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """Yield the events of the session's task until the work is done or a question is asked."""
        ...


@runtime_checkable
class WithCommands(Protocol):
    """An agent with slash commands: ``session.command`` may be set when it runs."""

    async def commands(self, workspace: Path, settings: AgentSettings | None) -> Sequence[SlashCommand]:
        """Return the agent's slash commands in a workspace."""
        ...


class HostedAgent:
    """Runs an :class:`AgentPort` as the engine expects it."""

    def __init__(self, agent: AgentPort) -> None:
        self._agent = agent

    async def commands(self, workspace: Path, settings: AgentSettings | None, user: str = "") -> Sequence[SlashCommand]:
        """Return the agent's slash commands, if it has any."""
        return await self._agent.commands(workspace, settings) if isinstance(self._agent, WithCommands) else ()

    async def advance(self, turn: AgentTurn) -> StateChange:
        """Work on the session's task up to its end or a question, and return that state."""
        session = turn.session
        for item in session.calls.unsettled:
            if item.call is not None and item.call.status is ToolCallStatus.EXECUTING:
                await turn.emit(*interruption_events(item.call, turn.broken_off))
        if session.state is TaskState.SUBMITTED:
            await turn.emit(StateChange(TaskState.WORKING))
        text_id = str(uuid.uuid4())
        end = StateChange(TaskState.COMPLETED)
        async with aclosing(_guarded(self._agent, session)) as events:
            async for event in events:
                if isinstance(event, StateChange) and event.state.ends_stream:
                    end = event
                    break
                match event:
                    case TextContent("") | AgentMessage(""):
                        event = replace(event, message_id=text_id)
                    case TextContent() | AgentMessage():
                        pass
                    case _:
                        text_id = str(uuid.uuid4())
                await turn.emit(event)
            else:
                if session.calls.waiting:
                    end = StateChange(TaskState.INPUT_REQUIRED)
        if end.state.is_terminal:
            await turn.emit(*_close_open_calls(session))
        return end


async def _guarded(agent: AgentPort, session: Session) -> AsyncGenerator[AgentEvent, None]:
    """Yield the events of the author's generator, and hide from clients the exceptions that are not meant for them.

    Raises:
        AgentFailedError: the generator raised an exception, or yielded something else than events. The text is that of
            an IsthmusError of the author's, otherwise it has a number under which the log has the details.
    """
    try:
        run = agent.run(session)
        _check_generator(run)
        async with aclosing(run) as events:
            async for event in events:
                yield _checked(event, run)
    except Exception as error:  # any code may run here
        if isinstance(error, IsthmusError) and not isinstance(error, WrongAgentError):
            raise AgentFailedError(str(error)) from error
        number = secrets.token_hex(4)
        raise AgentFailedError(f"The agent failed. Its log has the details, under error {number}.") from error


AUTHORS_CALLER = _guarded.__code__
"""Code object that calls the author's generator: the frames above it in a stack are the author's."""


def _check_generator(run: object) -> None:
    if isinstance(run, AsyncGenerator):
        return
    if inspect.iscoroutine(run):
        run.close()
    raise WrongAgentError(
        f"run() gave {_short(run)}; expected an async generator: `async def run(self, session)` with a `yield` in it"
    )


def _checked(event: object, run: AsyncGenerator[AgentEvent, None]) -> AgentEvent:
    """Return the event that ``run`` yielded as the journal will return it.

    Raises:
        WrongAgentError: the value is not an event, or a field has a wrong type; the text names the author's line.
    """
    if isinstance(event, TextContent) and isinstance(event.message_id, str) and isinstance(event.text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - another author's agent made it
        return event
    if (kind := EVENT_TYPES.get(type(event).__name__)) is None or not isinstance(event, kind):
        kinds = ", ".join(EVENT_TYPES)
        raise WrongAgentError(
            f"run() yielded {_short(event)}{_place(run)}; expected an event of isthmus.events: {kinds}"
        )
    try:
        return event_from_json(json.loads(json.dumps(event_to_json(event), allow_nan=False)))
    except (DecodeError, TypeError, ValueError, RecursionError) as error:
        raise WrongAgentError(f"run() yielded {_short(event)}{_place(run)}, which cannot be stored: {error}") from None


def _place(run: AsyncGenerator[AgentEvent, None]) -> str:
    """Return the place of the ``yield`` at which a generator waits; empty if it cannot be told."""
    frame = run.ag_frame if isinstance(run, AsyncGeneratorType) else None  # another kind may come from a framework
    return "" if frame is None else f" at {frame.f_code.co_filename}, line {frame.f_lineno}"


def _short(value: object) -> str:
    return with_ellipsis(repr(value), SHOWN_CHARACTERS)


def _close_open_calls(session: Session) -> Sequence[AgentEvent]:
    """Return the events for calls that the agent leaves open at the end of its work."""
    begun = [item.call for item in session.calls.unsettled if item.call is not None]
    is_left = {call.tool_call_id for call in begun if not call.status.is_final}
    closed = failed_calls(session, "The agent ended its work without a result of this call.")
    return [
        event
        for event in closed
        if (isinstance(event, ToolCallUpdate) and event.tool_call.tool_call_id in is_left)
        or (isinstance(event, ToolResultRecorded) and event.tool_call_id in is_left)
    ]


def ask(
    tool_call_id: str,
    tool_name: str,
    arguments: JsonObject,
    details: ConfirmationDetails,
    *,
    options: Sequence[ConfirmationOption] = OPTIONS,
) -> ToolCallUpdate:
    """Return the event that asks a user for permission to make a call; :func:`decision` returns the answer.

    Args:
        tool_call_id: Id of the call, once in its task.
        tool_name: Name of the tool, as users see it.
        arguments: Arguments of the call, as JSON.
        details: Content of the question, such as a command or the diff of a file.
        options: Answers among which the user chooses; by default to allow or to refuse.
    """
    request = ConfirmationRequest.of(tuple(options), details)
    call = ToolCall(tool_call_id, ToolCallStatus.PENDING, tool_name, arguments, confirmation_request=request)
    return ToolCallUpdate(call)


def decision(session: Session, tool_call_id: str) -> ToolCallConfirmation | None:
    """Return a user's answer to the question about a call; None while it waits, or when there is no question."""
    item = session.calls.get(tool_call_id)
    return item.confirmation if item is not None else None


def is_allowed(confirmation: ToolCallConfirmation) -> bool:
    """Return whether the user lets the call run."""
    return confirmation.selected_option_id != CANCEL
