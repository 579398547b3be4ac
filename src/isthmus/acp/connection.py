"""A connection of the Agent Client Protocol, for asyncio: our requests and the peer's, notifications, cancellation.

Both ends send requests. It reads chunks of bytes and writes lines; where they come from and go to, a process or
standard streams, is not its business. :mod:`isthmus.rpc.peer` reads the messages.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol, assert_never

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import encode
from isthmus.errors import DecodeError, IsthmusError
from isthmus.record import record
from isthmus.rpc import messages as rpc
from isthmus.rpc.json_lines import MAXIMUM_LINE_BYTES, LineFraming
from isthmus.rpc.peer import BrokenPeerError, JsonRpcPeer
from isthmus.rpc.pending import PendingRequests, RpcClosedError, RpcTimeoutError
from isthmus.rpc.wire_log import WIRE_LOG, WireLog

log = logging.getLogger(__name__)

CANCELLED = -32800
"""Error code of a request that was cancelled."""


@record(kw_only=True)
class ConnectionLimits:
    """Limits of a connection."""

    message_bytes: int = MAXIMUM_LINE_BYTES
    open_requests: int = 1000
    """Maximum number of the peer's requests that are carried out at the same time."""


class RequestHandler(Protocol):
    """Carries out the requests and notifications of the peer."""

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Return the result of a request.

        Raises:
            IsthmusError: it is refused. An RpcError has the code of the refusal.
        """
        ...

    def notification(self, method: str, params: JsonObject) -> None:
        """Take a notification; called in the order of the messages."""
        ...

    def cancel(self, method: str, params: JsonObject) -> bool:
        """End a request early that the peer cancels; return whether it ends by itself now, with a response."""
        ...


class AcpConnection:
    """One end of a connection; :meth:`read` runs as long as it lasts."""

    def __init__(
        self,
        handler: RequestHandler,
        write: Callable[[bytes], Awaitable[None]],
        limits: ConnectionLimits = ConnectionLimits(),
        log_name: str = "ACP",
    ) -> None:
        self._handler = handler
        self._write = write
        self._limits = limits
        self._peer = JsonRpcPeer(LineFraming(limits.message_bytes))
        self._pending = PendingRequests()
        self._running: dict[rpc.RequestId, tuple[asyncio.Task[None], str, JsonObject]] = {}
        self._wire_log = WireLog(log_name)
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether the connection has ended, or is ending."""
        return self._is_closed

    async def request(self, method: str, params: JsonObject, *, timeout: float | None) -> Any:
        """Send a request and return its result; ``timeout`` is in seconds, None for a wait for the user.

        If the wait ends early, the peer is asked to cancel the request.

        Raises:
            RpcError: the peer answered with an error, or the request is too large.
            RpcTimeoutError: there was no answer within the deadline.
            RpcClosedError: the connection is lost.
        """
        if self._is_closed:
            raise RpcClosedError(f"{method}: the connection is closed")
        number, framed = self._peer.request(method, params)
        self._wire_log.sent(method, framed)
        try:
            return await self._pending.wait(number, method, timeout, lambda: self._send(framed))
        except (RpcTimeoutError, asyncio.CancelledError):
            await self.notify("$/cancel_request", {"requestId": number})
            raise

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification, and wait until the peer has room for more; do nothing if the connection is lost."""
        framed = self._peer.frame(rpc.notification(method, params))
        self._wire_log.sent(method, framed)
        await self._send(framed)

    async def read(self, chunks: AsyncIterator[bytes]) -> None:
        """Carry out the peer's messages until ``chunks`` ends, then end all requests of both sides."""
        try:
            async for chunk in chunks:
                for message in self._peer.receive(chunk):
                    await self._take(message)
        except (OSError, BrokenPeerError) as error:
            log.warning("The connection broke: %s", error)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """End the connection and every request that is carried out."""
        self._is_closed = True
        self._pending.fail_all(lambda: RpcClosedError("the connection was lost"))
        running = [task for task, _, _ in self._running.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _take(self, message: rpc.Message) -> None:
        match message:
            case rpc.Response(number, result):
                self._log(f"response {number}", result)
                self._pending.resolve(number, result)
            case rpc.ErrorResponse(number, code, text, data):
                self._log(f"error {number}", {"code": code, "message": text, "data": data})
                self._pending.fail(number, rpc.RpcError(code, text, data))
            case rpc.Notification("$/cancel_request", params):
                self._cancel(params)
            case rpc.Notification(method, params):
                self._log(method, params)
                self._handler.notification(method, params)
            case rpc.Request(number, method, params):
                self._log(method, params)
                await self._start(number, method, params)
            case rpc.ParseError(number, code, text):
                await self._respond(rpc.error_response(number, code, text))
            case _:
                assert_never(message)

    def _log(self, head: str, body: object) -> None:
        if WIRE_LOG.isEnabledFor(logging.DEBUG):
            self._wire_log.received(head, encode(body))

    def _cancel(self, params: JsonObject) -> None:
        number = rpc.as_id(params.get("requestId"))
        if number in self._running:
            task, method, about = self._running[number]
            if not self._handler.cancel(method, about):
                task.cancel()

    async def _start(self, number: rpc.RequestId, method: str, params: JsonObject) -> None:
        if number in self._running:
            problem = f"request {number!r} is still carried out; expected another id"
            await self._respond(rpc.error_response(number, rpc.INVALID_REQUEST, problem))
        elif len(self._running) >= self._limits.open_requests:
            problem = f"{len(self._running)} requests are carried out already; wait for their answers"
            await self._respond(rpc.error_response(number, rpc.SERVER_ERROR, problem))
        else:
            task = asyncio.create_task(self._carry_out(number, method, params), name=f"ACP {method}")
            self._running[number] = (task, method, params)
            task.add_done_callback(lambda _: self._running.pop(number, None))
            # It begins before the next message, which may cancel it: else it would end without an answer.
            await asyncio.sleep(0)

    async def _carry_out(self, number: rpc.RequestId, method: str, params: JsonObject) -> None:
        try:
            response = rpc.response(number, await self._handler.request(method, params))
        except asyncio.CancelledError:
            response = rpc.error_response(number, CANCELLED, f"{method} was cancelled")
        except rpc.RpcError as error:
            response = rpc.error_response(number, error.code or rpc.SERVER_ERROR, str(error), error.data)
        except DecodeError as error:
            response = rpc.error_response(number, rpc.INVALID_PARAMS, str(error))
        except IsthmusError as error:
            response = rpc.error_response(number, rpc.INTERNAL_ERROR, str(error))
        except Exception:
            log.exception("%s failed", method)
            response = rpc.error_response(number, rpc.INTERNAL_ERROR, f"{method} failed; the log on stderr has more")
        await self._respond(response)

    async def _respond(self, response: rpc.JsonMessage) -> None:
        framed = self._peer.frame(response)
        self._wire_log.sent("response", framed)
        await self._send(framed)

    async def _send(self, framed: bytes) -> None:
        if self._is_closed:
            return
        try:
            await self._write(framed)
        except OSError as error:
            log.info("The peer does not read any more: %s", error)
            self._is_closed = True
            self._pending.fail_all(lambda: RpcClosedError("the peer does not read any more"))
