"""Answers one request: performs its operation on the caller's agent, and has its wire write the result.

The request was read in :mod:`isthmus.a2a.server.endpoint`.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from typing import assert_never

import anyio
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from isthmus.a2a.openings import Openings, opening_of
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.errors import internal_error, push_not_supported
from isthmus.a2a.protocol.extension import NOTES_HEADER, PROMPTS_HEADER, Activation
from isthmus.a2a.protocol.jsonrpc import LIMIT_REACHED, NO_EXTENDED_CARD, UNSUPPORTED_OPERATION
from isthmus.a2a.protocol.notes import snapshot_without_notes
from isthmus.a2a.protocol.operations import (
    CancelTask,
    DeletePush,
    ExecuteCommand,
    FollowTask,
    GetExtendedCard,
    GetPush,
    GetSessionStatus,
    GetTask,
    ListCommands,
    ListPushes,
    ListTasks,
    Operation,
    PushService,
    SendMessage,
    SetPush,
)
from isthmus.a2a.protocol.task_encoder import last_message_of
from isthmus.a2a.server.card import card_url, extended_card
from isthmus.a2a.server.framing import Framing
from isthmus.a2a.server.http.bodies import free_room, is_large
from isthmus.a2a.server.http.sse import EventStream, OpenStreams
from isthmus.a2a.server.logs.access_log import note_of
from isthmus.a2a.server.sending import send_noted
from isthmus.a2a.server.stream_encoders import EncoderWithoutNotes, PromptsEncoder, UnknownEventsEncoder, at_message
from isthmus.a2a.service import close, follow, page_of_tasks
from isthmus.a2a.wire import Caller, JsonDict, StreamEncoder, Wire
from isthmus.client import Delivery, HistoryMessage, SessionStatusProvider, TaskSnapshot, Turn
from isthmus.development_tool import ExecuteSlashCommandResponse, GetAllSlashCommandsResponse, ToolCall
from isthmus.encoding.codec import JsonObject, to_json
from isthmus.errors import IsthmusError
from isthmus.events import AgentMessage, Command, Prompt, StateChange, TaskState
from isthmus.record import record
from isthmus.rpc.messages import RpcError
from isthmus.runtime.large_values import LARGE_BYTES
from isthmus.runtime.large_work import off_loop
from isthmus.text.visible import without_control_characters

_LOG = logging.getLogger(__name__)


@record
class Answering:
    """One request, with everything needed to answer it."""

    wire: Wire
    framing: Framing
    caller: Caller
    activation: Activation
    options: ServerOptions
    streams: OpenStreams
    http: HttpRequest
    openings: Openings

    async def respond(self, operation: Operation) -> Response:
        """Return the response to the request.

        Raises:
            IsthmusError: the operation failed; nothing was sent.
        """
        match operation:
            case SendMessage(stream=True):
                return await self._send_stream(operation)
            case FollowTask():
                return await self._follow(operation)
            case ExecuteCommand():
                return await self._execute(operation)
            case _:
                performing = self._result(operation)
                del operation  # a message may be large, and its answer may take long
                return await self._framed_result(await performing)

    async def _result(self, operation: Operation) -> object:
        agent, uri = self.caller.agent, self.activation.uri
        match operation:
            case SendMessage():
                sending = self._send(operation)
                del operation
                return await sending
            case GetTask(task_id, history_length):
                return await self._task(task_id, history_length)
            case CancelTask(task_id):
                return self.wire.task(self._shown(await agent.cancel(task_id)), uri)
            case ListTasks():
                page = await page_of_tasks(agent, operation)
                page = replace(page, tasks=tuple(self._shown(task) for task in page.tasks))
                return self.wire.tasks(page, uri, operation.history_length or 0)
            case SetPush(task_id, target):
                target = await self._push.set(task_id, target, self.wire.name, uri)
                return self.wire.push(task_id, target)
            case GetPush(task_id, push_id):
                return self.wire.push(task_id, await self._push.get(task_id, push_id))
            case ListPushes(task_id):
                return self.wire.pushes(task_id, await self._push.list(task_id))
            case DeletePush(task_id, push_id):
                await self._push.delete(task_id, push_id)
                return self.wire.nothing()
            case ListCommands(scope):
                return to_json(GetAllSlashCommandsResponse(tuple(await agent.commands(scope))))
            case GetSessionStatus(scope):
                return to_json(await agent.session_status(scope)) if isinstance(agent, SessionStatusProvider) else {}
            case GetExtendedCard():
                version = "1.0" if self.wire.name == "1.0" else None
                if self.options.identity.security_schemes == {}:
                    # In 1.0 (3.3.4) the other code is for cards that declare an extended card and do not have one.
                    code = NO_EXTENDED_CARD if version is None else UNSUPPORTED_OPERATION
                    raise RpcError(code, "there is no extended card: all clients receive the public card")
                return await extended_card(card_url(self.http, self.options), self.caller, self.options, version)
            case FollowTask() | ExecuteCommand():
                raise TypeError(f"expected an operation with one result, received one with a stream: {operation}")
            case _:
                assert_never(operation)

    async def _framed_result(self, result: object) -> Response:
        """Return the response with a result. The task of a large message is large, too."""
        size = LARGE_BYTES if is_large(self.http.scope) else 0
        return await off_loop(size, self.framing.result, result, echo(self.activation))

    # --- messages ---

    async def _send(self, message: SendMessage) -> JsonDict:
        await self._check_push(message)
        turn = (await send_noted(self.caller, message, note_of(self.http.scope))).turn
        self._note_opening(turn, message.extension, message.settings)
        await self._set_push(message, turn)
        is_blocking, history_length = message.blocking, message.history_length
        del message
        free_room(self.http.scope)
        if is_blocking:
            answer = await self._drain(turn)
            if answer is not None:
                shown = (
                    answer
                    if self.activation.uri is not None
                    else replace(answer, text=without_control_characters(answer.text))
                )
                return self.wire.message_item(shown, turn.context_id)
        else:
            await close(turn.deliveries)
        return self.wire.task_item(await self._task(turn.task_id, history_length))

    async def _send_stream(self, message: SendMessage) -> Response:
        await self._check_push(message)
        opened = await send_noted(self.caller, message, note_of(self.http.scope))
        turn = opened.turn
        self._note_opening(turn, message.extension, message.settings)
        await self._set_push(message, turn)
        size = LARGE_BYTES if is_large(self.http.scope) else 0
        first = [await off_loop(size, self._task_frame, turn)] if turn.is_new else []
        return self._stream(first, turn, opened.answered)

    async def _task(self, task_id: str, history_length: int | None) -> JsonDict:
        """Return the Task. A completed Task has its final text, whatever history length is requested."""
        needed = None if history_length is None else max(history_length, 1)
        snapshot = await self.caller.agent.get(task_id, needed)
        uri = self.activation.uri
        opening = None
        if uri is None and snapshot.state is TaskState.COMPLETED:
            opening = await self.openings.of({"id": task_id}, self.caller.agent, self.caller.name)
        is_polled = opening is not None and opening.is_polled
        return self.wire.task(self._shown(snapshot), uri, history_length, is_polled=is_polled)

    async def _drain(self, turn: Turn) -> AgentMessage | None:
        """Wait until the work ends or asks the user, the client leaves, the server stops, or the limit has passed.

        Return the message that is the agent's whole answer, if there is one and the work is completed.
        """
        answer: AgentMessage | None = None
        is_completed = False
        try:
            with anyio.move_on_after(self.options.blocking_limit):
                async with self.streams.scope(), anyio.create_task_group() as group:

                    async def watch() -> None:
                        while (await self.http.receive())["type"] != "http.disconnect":
                            pass
                        group.cancel_scope.cancel()

                    group.start_soon(watch)
                    async for delivery in turn.deliveries:
                        match delivery.event:
                            case AgentMessage(is_answer=True) as message:
                                answer = message
                            case StateChange(state):
                                is_completed = state is TaskState.COMPLETED
                            case _:
                                pass
                    group.cancel_scope.cancel()
        finally:
            await close(turn.deliveries)
        return answer if is_completed else None

    # --- following, and commands ---

    async def _follow(self, operation: FollowTask) -> Response:
        turn = await follow(self.caller.agent, operation)
        task = self._task_frame(turn)
        goes_on, shows_prompts = operation.to_end, self.http.headers.get(PROMPTS_HEADER) is not None
        if operation.after is None:
            return self._stream([task], turn, goes_on=goes_on, shows_prompts=shows_prompts)
        if operation.after == 0 and not operation.known:
            begun, shown, turn = await self._begun(turn)
            return self._stream(begun, turn, otherwise=task, shown=shown, goes_on=goes_on, shows_prompts=shows_prompts)
        # A client that missed no event of a task without further events receives the task in its current state.
        known = operation.known
        return self._stream([], turn, otherwise=task, known=known, goes_on=goes_on, shows_prompts=shows_prompts)

    async def _begun(self, turn: Turn) -> tuple[Sequence[bytes], Delivery | None, Turn]:
        """Return the frame of the task as it began, the user's message in it, and the turn with the events after it."""
        first = await anext(turn.deliveries, None)
        if first is None:
            return (), None, turn
        if not isinstance(first.event, Prompt | Command):
            return (), None, replace(turn, deliveries=_chain(first, turn.deliveries))
        snapshot = at_message(turn.snapshot, first, first.event)
        return [self._task_frame(replace(turn, snapshot=snapshot))], first, turn

    async def _execute(self, operation: ExecuteCommand) -> Response:
        await self.caller.check_quota()
        execution = await self.caller.agent.execute(operation.command)
        task_id = execution.turn.task_id if execution.turn is not None else ""
        answer = to_json(ExecuteSlashCommandResponse(task_id, execution.status, execution.message))
        if execution.turn is not None:
            self._note_opening(execution.turn, operation.command.extension, operation.command.scope.settings)
        if execution.turn is None or not operation.stream:
            if execution.turn is not None:
                note_of(self.http.scope).task_id = execution.turn.task_id
                await close(execution.turn.deliveries)
            return self.framing.result(answer, echo(self.activation))
        return self._stream([self.framing.item(answer), self._task_frame(execution.turn)], execution.turn)

    def _note_opening(self, turn: Turn, extension: str | None, settings: JsonObject | None) -> None:
        if turn.is_new:
            opening = opening_of(extension, settings)
            self.openings.note(turn.task_id, turn.context_id, self.caller.name, opening)

    # --- push notifications ---

    @property
    def _push(self) -> PushService:
        if self.caller.push is None:
            raise push_not_supported()
        return self.caller.push

    async def _check_push(self, message: SendMessage) -> None:
        """Refuse a message with an invalid push target before its task is created."""
        if message.push is not None:
            await self._push.check(message.push)

    async def _set_push(self, message: SendMessage, turn: Turn) -> None:
        if message.push is not None:
            uri, after = self.activation.uri, turn.snapshot.seq
            await self._push.set(turn.task_id, message.push, self.wire.name, uri, after=after)

    # --- streams ---

    @property
    def _has_notes(self) -> bool:
        return self.http.headers.get(NOTES_HEADER) is not None

    def _shown(self, snapshot: TaskSnapshot) -> TaskSnapshot:
        return snapshot if self._has_notes else snapshot_without_notes(snapshot)

    def _task_frame(self, turn: Turn) -> bytes:
        task = self.wire.task(self._shown(turn.snapshot), self.activation.uri)
        return self.framing.item(self.wire.task_item(task), turn.snapshot.seq)

    def _stream(
        self,
        first: Sequence[bytes],
        turn: Turn,
        answered: frozenset[str] = frozenset(),
        *,
        otherwise: bytes | None = None,
        shown: Delivery | None = None,
        known: int = 0,
        goes_on: bool = False,
        shows_prompts: bool = False,
    ) -> Response:
        uri, tier = self.activation.uri, self.caller.user_tier
        note_of(self.http.scope).task_id = turn.task_id
        encoder = self.wire.stream(turn.snapshot, uri, answered=answered, user_tier=tier, has_notes=self._has_notes)
        if not self._has_notes:
            encoder = EncoderWithoutNotes(encoder)
        if shown is not None:
            encoder.encode(shown)  # It is in ``first``; the notes of the event behind it name its pictures.
        if shows_prompts:
            encoder = PromptsEncoder(encoder, self.wire, turn.snapshot, uri)
        if known:
            encoder = UnknownEventsEncoder(encoder, known)
        frames = self._frames(first, turn, encoder, otherwise, goes_on)
        return EventStream(
            frames,
            self.streams,
            keep_alive=self.options.keep_alive,
            headers=echo(self.activation),
            last_frame=self._last_frame,
        )

    def _last_frame(self, reason: str) -> bytes:
        return self.framing.error_item(self.wire.error(RpcError(LIMIT_REACHED, reason)))

    async def _frames(
        self, first: Sequence[bytes], turn: Turn, encoder: StreamEncoder, otherwise: bytes | None, goes_on: bool
    ) -> AsyncGenerator[bytes, None]:
        """Yield the frames of a turn. An event that may be the last one is held until more follow, or the turn ends.

        ``otherwise`` is sent when the stream would be empty. A stream that ``goes_on`` does not end with a question, so
        questions are sent at once.
        """
        held: Delivery | None = None
        try:
            for frame in first:
                otherwise = None
                yield frame
            del first  # it may have a large message, and the stream may last long
            async for delivery in turn.deliveries:
                if held is not None:
                    for frame in self._framed(encoder.encode(held), held):
                        otherwise = None
                        yield frame
                    held = None
                if isinstance(delivery.event, StateChange) and delivery.event.state.ends_stream:
                    if not goes_on or delivery.event.state.is_terminal:
                        held = delivery
                        continue
                    pending, answer = await self._at_end(turn.task_id, delivery)
                    for frame in self._framed(encoder.encode(delivery, pending=pending, answer=answer), delivery):
                        otherwise = None
                        yield frame
                    continue
                for frame in self._framed(encoder.encode(delivery), delivery):
                    otherwise = None
                    yield frame
            if held is not None:
                pending, answer = await self._at_end(turn.task_id, held)
                for frame in self._framed(encoder.encode(held, final=True, pending=pending, answer=answer), held):
                    otherwise = None
                    yield frame
            if otherwise is not None:
                yield otherwise
        except IsthmusError as error:
            yield self.framing.error_item(self.wire.error(error))
        except Exception:  # the client receives an error without details
            _LOG.exception("a stream failed because of a bug")
            yield self.framing.error_item(self.wire.error(internal_error()))
        finally:
            await close(turn.deliveries)

    async def _at_end(self, task_id: str, last: Delivery) -> tuple[Sequence[ToolCall], HistoryMessage | None]:
        """Return the calls that wait for the user, and the agent's last message, after the last delivery."""
        state = last.event.state if isinstance(last.event, StateChange) else None
        is_plain = self.activation.uri is None
        if state is None or not (state.is_waiting or (state is TaskState.COMPLETED and is_plain)):
            return (), None
        task = await self.caller.agent.get(task_id, 1 if is_plain else 0)
        return task.pending, last_message_of(task)

    def _framed(self, items: Sequence[JsonDict], delivery: Delivery) -> Sequence[bytes]:
        """Return the frames of a delivery's items; the last one has the event's number, so that resuming skips none."""
        if len(items) == 1:
            return (self.framing.item(items[0], delivery.seq),)
        last = len(items) - 1
        return [self.framing.item(item, delivery.seq if at == last else None) for at, item in enumerate(items)]


def echo(activation: Activation) -> dict[str, str]:
    """Return the response headers that confirm the extension; none when it is not active."""
    uri = activation.uri
    return {} if uri is None else {"A2A-Extensions": uri, "X-A2A-Extensions": uri}


async def _chain(first: Delivery, rest: AsyncIterator[Delivery]) -> AsyncGenerator[Delivery, None]:
    try:
        yield first
        async for delivery in rest:
            yield delivery
    finally:
        await close(rest)
