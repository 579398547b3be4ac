"""One turn of a session in front of a client: shows a task's events, asks its questions, and says how it ended.

A question is asked once in each client. The first answer decides; the other clients' questions are withdrawn.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from isthmus.acp.front.questions import ClientQuestion, answer_of, question_of
from isthmus.acp.front.updates import UpdateEncoder
from isthmus.acp.front.wire import StateReport, TurnError, TurnReport, TurnState
from isthmus.acp.v1.connection import ElicitationCapabilities
from isthmus.acp.v1.content import ContentBlock
from isthmus.acp.v1.sessions import StopReason
from isthmus.acp.v1.updates import SessionUpdate
from isthmus.client import AgentClient, InvalidRequest, TaskError, TaskNotCancelable, TaskNotFound, Turn
from isthmus.development_tool import ToolCall
from isthmus.errors import DecodeError, IsthmusError
from isthmus.events import AgentEvent, StateChange, TaskState
from isthmus.fronts.task_stream import FrontTimeouts, TaskStream
from isthmus.internal_events import ModelReply
from isthmus.record import record
from isthmus.rpc.messages import INTERNAL_ERROR, SERVER_ERROR, RpcError
from isthmus.task_view import TaskView

AUTH_REQUIRED = SERVER_ERROR
"""Error code of a request that needs a login first."""

QUIET_SECONDS = 0.5
"""Time without an event after which a turn that still runs counts as sent again; its last event may not be for us."""
_CHECK_SECONDS = 0.02

_FAILED = "error"
"""Reason for the end of a turn that failed otherwise, a word of version 2: version 1 has errors of requests instead."""

_STOP_REASONS = {
    "output_limit": StopReason.MAX_TOKENS,
    "safety": StopReason.REFUSAL,
    "turn_limit": StopReason.MAX_TURN_REQUESTS,
}


@record
class BegunPrompt:
    """A prompt of the client as the agent has taken it: with a turn, or over already, with a notice for the user.

    ``message_id`` is None if it was cancelled before the agent had it.
    """

    content: tuple[ContentBlock, ...]
    message_id: str | None
    turn: Turn | None = None
    notice: str = ""
    reason: StopReason = StopReason.END_TURN


@record
class ClientPort:
    """The client as one session sees it: functions that send to it, and what it can show."""

    update: Callable[[SessionUpdate], Awaitable[None]]
    report: Callable[[TurnReport], Awaitable[None]]
    ask: Callable[[ClientQuestion], Awaitable[object]]
    shows: ElicitationCapabilities
    name: str


class SessionTurn:
    """Shows one task to a client until it ends. ``has_response``: the response to a prompt says why it failed.

    ``on_reply`` is called after each message of the model, for agents that tell of them.
    """

    def __init__(
        self,
        agent: AgentClient,
        stream: TaskStream,
        encoder: UpdateEncoder,
        client: ClientPort,
        timeouts: FrontTimeouts,
        *,
        has_response: bool,
        on_reply: Callable[[ModelReply], Awaitable[None]] | None = None,
    ) -> None:
        self.stream = stream
        self._agent = agent
        self._encoder = encoder
        self._client = client
        self._timeouts = timeouts
        self._has_response = has_response
        self._on_reply = on_reply
        self._showing: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether the task has ended, or waits for a message in words."""
        state = self.stream.view.state
        return state.is_terminal or (state.is_waiting and not self.stream.is_asking)

    def begin(self) -> "asyncio.Task[None]":
        """Begin to show events; :meth:`run` goes on with it."""
        self._showing = asyncio.create_task(self._show(), name="ACP events of a turn")
        return self._showing

    def leave(self) -> None:
        """Stop showing events; the task goes on."""
        if self._showing is not None:
            self._showing.cancel()

    async def run(self) -> None:
        """Show events and ask questions until the task has ended.

        Raises:
            RpcError: the client cannot ask the user, and the question stays open; or the agent cannot be reached.
            TaskNotFound: the task was deleted meanwhile.
            TaskError: the agent refuses an answer.
        """
        try:
            await self._run()
        except (RpcError, TaskError):
            raise
        except IsthmusError as error:
            raise RpcError(INTERNAL_ERROR, f"{error} The turn may go on: load the session.") from error

    async def _run(self) -> None:
        if not self.stream.is_asking:
            await self._client.report(StateReport(TurnState.RUNNING))
        if self._showing is not None:
            await self._showing
        elif not self.stream.is_asking:
            await self._show()
        while self.stream.is_asking:
            await self._client.report(StateReport(TurnState.REQUIRES_ACTION))
            await self._ask(self.stream.view.questions[0].call)
            if not self.stream.view.state.is_terminal:
                await self._client.report(StateReport(TurnState.RUNNING))
                await self._show()
        if not self.stream.view.state.ends_stream:
            raise RpcError(INTERNAL_ERROR, "the connection to the agent was lost; the turn goes on: load the session")

    async def cancel(self) -> None:
        """Stop the task; one that has ended, or was deleted, is left as it is."""
        with suppress(TaskNotCancelable, TaskNotFound):
            await self._agent.cancel(self.stream.task_id)

    async def _show(self) -> None:
        """Show events until the task ends or asks."""
        async for delivery in self.stream.deliveries():
            await self._send(delivery.event)

    async def _send(self, event: AgentEvent) -> None:
        if self._has_response and isinstance(event, StateChange) and event.reason not in _STOP_REASONS:
            return
        for update in self._encoder.updates(event):
            await self._client.update(update)
        if self._on_reply is not None and isinstance(event, ModelReply):
            await self._on_reply(event)

    async def _ask(self, call: ToolCall) -> None:
        """Put a question to the client, and watch for an answer given elsewhere."""
        question = question_of(call, self.stream.context_id, self._encoder.workspace, self._client.shows)
        for update in self._encoder.call(call):
            await self._client.update(update)
        ask = asyncio.ensure_future(self._client.ask(question))
        watch = asyncio.ensure_future(self._watch(call.tool_call_id))
        try:
            await asyncio.wait({ask, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not ask.done():
                watch.result()
                return
            answer = answer_of(question, call, ask.result())
        except (RpcError, DecodeError) as error:
            raise RpcError(
                INTERNAL_ERROR, f"the client did not ask the user: {error}. The question stays open: load the session."
            ) from error
        finally:
            await _stop(ask, watch)
        if answer is None:
            await self.cancel()
            await self._catch_up()
            return
        try:
            await self.stream.answer(answer, self._client.name)
        except InvalidRequest as error:
            await self._catch_up()
            if any(view.call.tool_call_id == call.tool_call_id for view in self.stream.view.questions):
                raise RpcError(INTERNAL_ERROR, str(error)) from error

    async def _watch(self, tool_call_id: str) -> None:
        """Show what happens meanwhile, until the question is no longer open."""
        while True:
            try:
                async for delivery in self.stream.while_asked():
                    await self._send(delivery.event)
                    if all(view.call.tool_call_id != tool_call_id for view in self.stream.view.questions):
                        return
                return
            except TaskNotFound:
                raise  # deleted: it never comes back
            except IsthmusError:
                # The user can still answer here; the agent decides once it can be reached.
                await asyncio.sleep(self._timeouts.return_seconds)

    async def _catch_up(self) -> None:
        async for delivery in self.stream.missed():
            await self._send(delivery.event)


async def show_past(turn: SessionTurn, target: int) -> None:
    """Show a turn up to its event ``target``; its further events are shown as they come."""
    showing = turn.begin()
    quiet, seen = 0.0, -1
    while not showing.done() and turn.stream.view.seq < target and quiet < QUIET_SECONDS:
        await asyncio.wait({showing}, timeout=_CHECK_SECONDS)
        quiet = quiet + _CHECK_SECONDS if turn.stream.view.seq == seen else 0.0
        seen = turn.stream.view.seq
    if showing.done():
        showing.result()


def stop_reason(view: TaskView) -> StopReason:
    """Return the reason for the end of a turn.

    Raises:
        RpcError: the turn failed, or needs a login.
    """
    match view.state:
        case TaskState.CANCELED:
            return StopReason.CANCELLED
        case TaskState.FAILED if (reason := _STOP_REASONS.get(view.reason or "")) is not None:
            return reason
        case TaskState.FAILED:
            raise RpcError(INTERNAL_ERROR, view.error or "the agent failed without a reason")
        case TaskState.REJECTED:
            return StopReason.REFUSAL
        case TaskState.AUTH_REQUIRED:
            raise RpcError(AUTH_REQUIRED, view.error or "the agent needs a login")
        case _:
            return StopReason.END_TURN


def ended_by(view: TaskView) -> StateReport:
    """Return the report of the end of a turn, also of one that failed."""
    try:
        return StateReport(TurnState.IDLE, stop_reason(view).value)
    except RpcError as error:
        return failed(error)


def state_of(turns: Sequence[SessionTurn]) -> StateReport:
    """Return the report of the state of a session with these turns."""
    open_turns = [turn for turn in turns if not turn.is_over]
    if any(turn.stream.is_asking for turn in open_turns):
        return StateReport(TurnState.REQUIRES_ACTION)
    return StateReport(TurnState.RUNNING if open_turns else TurnState.IDLE)


def failed(error: IsthmusError) -> StateReport:
    """Return the report of a turn that failed with an error."""
    code = error.code if isinstance(error, RpcError) else INTERNAL_ERROR
    return StateReport(TurnState.IDLE, _FAILED, TurnError(code or INTERNAL_ERROR, str(error)))


async def _stop(*tasks: "asyncio.Future[object] | asyncio.Future[None]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
