"""The JSON-RPC endpoint: one request body in, one HTTP response or event stream out.

Where a request is decoded, performed and its answer encoded. Deliberately not here: who may ask at all
(:mod:`isthmus.a2a.server`), and what the words mean (the wire modules, :mod:`isthmus.a2a.service`).
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, assert_never, cast

import anyio
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from isthmus.a2a.extension import HEADERS, URI, Activation, activation
from isthmus.a2a.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    InvalidParamsError,
    Request,
    RequestId,
    RpcError,
    decode_request,
    decode_value,
    encode_error,
    encode_result,
    id_of,
)
from isthmus.a2a.operations import CancelTask, FollowTask, GetTask, ListTasks, Operation, SendMessage
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.service import Opened, Service, rpc_error
from isthmus.a2a.sse import EventStream, OpenStreams, event_frame
from isthmus.a2a.wire_v03_encoder import StreamEncoder, encode_task
from isthmus.a2a.wire_v03_requests import SEND, STREAM, decode_operation, metadata_of
from isthmus.client import AgentClient, Delivery, Turn
from isthmus.errors import IsthmusError

_LOG = logging.getLogger(__name__)


class JsonRpcEndpoint:
    """Answers requests with an agent's tasks."""

    def __init__(self, agent: AgentClient, options: ServerOptions) -> None:
        self._agent = agent
        self._options = options
        self._service = Service(agent)
        self.streams = OpenStreams()

    async def answer(self, http: HttpRequest, body: bytes) -> Response:
        """Perform the request in ``body``. Every failure is a JSON-RPC error; a bug is one without internals."""
        request_id: RequestId = None
        active = Activation()
        try:
            value = decode_value(body)
            request_id = id_of(value)
            request = decode_request(value)
            asked = (item for name in HEADERS for item in http.headers.getlist(name))
            active = activation(asked, *metadata_of(request.params))
            self._require_extension(request, active)
            operation = decode_operation(request, active, _last_event_id(http))
            return await self._perform(request_id, operation, active, http)
        except IsthmusError as error:
            return _failure(request_id, rpc_error(error), active, http)
        except Exception:
            _LOG.exception("a request failed because of a bug")
            return _failure(request_id, _bug(), active, http)

    def _require_extension(self, request: Request, active: Activation) -> None:
        if self._options.strict_extension and not active.active and request.method in (SEND, STREAM):
            message = f"this server requires the development-tool extension: activate {URI} in A2A-Extensions"
            raise RpcError(INVALID_REQUEST, message, {"uri": URI})

    async def _perform(
        self, request_id: RequestId, operation: Operation, active: Activation, http: HttpRequest
    ) -> Response:
        result: object
        match operation:
            case SendMessage(stream=True):
                opened = await self._service.send(operation, active)
                frames = self._message_frames(request_id, opened, active)
                return self._stream(frames, active)
            case SendMessage():
                opened = await self._service.send(operation, active)
                if operation.blocking:
                    await self._drain(opened.turn, http)
                else:
                    await _close(opened.turn.deliveries)
                result = await self._task(opened.turn.task_id, operation.history_length, active)
            case FollowTask(task_id, after):
                turn = await self._agent.follow(task_id, after)
                return self._stream(self._follow_frames(request_id, turn, active, after), active)
            case GetTask(task_id, history_length):
                result = await self._task(task_id, history_length, active)
            case CancelTask(task_id):
                result = encode_task(await self._agent.cancel(task_id), active.uri)
            case ListTasks(limit):
                result = {"tasks": [encode_task(task, active.uri) for task in await self._agent.tasks(limit)]}
            case _:
                assert_never(operation)
        return json_response(encode_result(request_id, result), headers=_echo(active))

    async def _task(self, task_id: str, history_length: int | None, active: Activation) -> dict[str, Any]:
        """The Task; the final text of a completed one does not depend on how much history is asked for."""
        needed = None if history_length is None else max(history_length, 1)
        return encode_task(await self._agent.get(task_id, needed), active.uri, history_length)

    def _stream(self, frames: AsyncGenerator[bytes, None], active: Activation) -> Response:
        return EventStream(frames, self.streams, keep_alive=self._options.keep_alive, headers=_echo(active))

    async def _drain(self, turn: Turn, http: HttpRequest) -> None:
        """Wait until the work rests, the client has left, the server stops, or the limit has passed."""
        scope = self.streams.enter()
        try:
            with scope, anyio.move_on_after(self._options.blocking_limit):
                async with anyio.create_task_group() as group:

                    async def watch() -> None:
                        while (await http.receive())["type"] != "http.disconnect":
                            pass
                        group.cancel_scope.cancel()

                    group.start_soon(watch)
                    async for _ in turn.deliveries:
                        pass
                    group.cancel_scope.cancel()
        finally:
            self.streams.leave(scope)
            await _close(turn.deliveries)

    async def _message_frames(
        self, request_id: RequestId, opened: Opened, active: Activation
    ) -> AsyncGenerator[bytes, None]:
        turn = opened.turn
        if turn.is_new:
            task = encode_task(turn.snapshot, active.uri)
            yield event_frame(encode_result(request_id, task), turn.snapshot.seq)
        encoder = StreamEncoder(turn.snapshot, active.uri, answered=opened.answered)
        async with aclosing(self._frames(request_id, turn, encoder)) as frames:
            async for frame in frames:
                yield frame

    async def _follow_frames(
        self, request_id: RequestId, turn: Turn, active: Activation, after: int | None
    ) -> AsyncGenerator[bytes, None]:
        task = event_frame(encode_result(request_id, encode_task(turn.snapshot, active.uri)), turn.snapshot.seq)
        if after is None:
            yield task
        is_told = after is None
        encoder = StreamEncoder(turn.snapshot, active.uri)
        async with aclosing(self._frames(request_id, turn, encoder)) as frames:
            async for frame in frames:
                is_told = True
                yield frame
        if not is_told:
            yield task  # nothing was missed and nothing will come: say how the task stands

    async def _frames(self, request_id: RequestId, turn: Turn, encoder: StreamEncoder) -> AsyncGenerator[bytes, None]:
        """The frames of a turn. An event that may be the last one is held until it is known whether more follow."""
        held: Delivery | None = None
        try:
            async for delivery in turn.deliveries:
                if held is not None:
                    frame, held = _frame(request_id, encoder.encode(held), held), None
                    if frame is not None:
                        yield frame
                if encoder.may_be_last(delivery):
                    held = delivery
                    continue
                frame = _frame(request_id, encoder.encode(delivery), delivery)
                if frame is not None:
                    yield frame
            if held is not None:
                pending = (await self._agent.get(turn.task_id, 0)).pending if encoder.asks(held) else ()
                frame = _frame(request_id, encoder.encode(held, final=True, pending=pending), held)
                if frame is not None:
                    yield frame
        except IsthmusError as error:
            yield event_frame(encode_error(request_id, rpc_error(error)))
        except Exception:
            _LOG.exception("a stream failed because of a bug")
            yield event_frame(encode_error(request_id, _bug()))
        finally:
            await _close(turn.deliveries)


def _frame(request_id: RequestId, event: Mapping[str, Any] | None, delivery: Delivery) -> bytes | None:
    return None if event is None else event_frame(encode_result(request_id, event), delivery.seq)


async def _close(deliveries: AsyncIterator[Delivery]) -> None:
    if isinstance(deliveries, AsyncGenerator):
        await cast("AsyncGenerator[Delivery, None]", deliveries).aclose()


def json_response(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An HTTP answer of JSON."""
    return Response(body, status, headers, "application/json")


def _failure(request_id: RequestId, error: RpcError, active: Activation, http: HttpRequest) -> Response:
    body = encode_error(request_id, error)
    accept = ",".join(http.headers.getlist("accept"))
    if "text/event-stream" in accept and "application/json" not in accept:
        # Real clients that ask for an event stream alone cannot read anything else (a2a-sdk, @a2a-js/sdk).
        return Response(event_frame(body), 200, _echo(active), "text/event-stream")
    return json_response(body, headers=_echo(active))


def _bug() -> RpcError:
    return RpcError(INTERNAL_ERROR, "internal error; the server's log has the details")


def _echo(active: Activation) -> dict[str, str]:
    return {} if active.uri is None else {"A2A-Extensions": active.uri, "X-A2A-Extensions": active.uri}


def _last_event_id(http: HttpRequest) -> int | None:
    for source, value in (
        ("Last-Event-ID", http.headers.get("last-event-id")),
        ("last_event_id", http.query_params.get("last_event_id") if http.scope["query_string"] else None),
    ):
        if value:
            if not (value.isascii() and value.isdecimal() and len(value) < 19):
                raise InvalidParamsError(source, f"expected the id of an event of this task, received {value[:80]!r}")
            return int(value)
    return None
