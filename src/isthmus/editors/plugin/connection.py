"""A JSON-RPC connection over two pipes, for asyncio: requests with deadlines, and whatever the peer sends to callbacks.

A peer that does not read keeps nobody waiting: beyond a cap of unread output requests fail at once and notifications
are dropped. What is on the wire is in :mod:`isthmus.rpc.lsp`.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

from isthmus.encoding.codec import JsonObject
from isthmus.rpc import messages as rpc
from isthmus.rpc.lsp import BrokenPeerError, JsonRpcPeer, frame
from isthmus.rpc.pending import PendingRequests, RpcClosedError, RpcTimeoutError


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeLimits:
    """Limits of a connection over two pipes."""

    unread_bytes: int = 64 * 1024 * 1024
    """Maximum output that waits for a peer that does not read."""
    last_words_seconds: float = 1.0
    """Maximum time for reading on, once the peer reads nothing more."""
    chunk_bytes: int = 65_536
    """Maximum number of bytes read at once."""


class JsonRpcConnection:
    """Made by :func:`open_connection`. ``on_request`` returns the result, or raises :class:`RpcError` with a code.

    The callbacks run on the event loop, in the order of what came, and return at once; ``on_close`` is called once,
    with what was wrong, None when the peer just ended.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        transports: tuple[asyncio.ReadTransport, asyncio.WriteTransport],
        on_request: Callable[[str, JsonObject], object],
        on_notification: Callable[[str, JsonObject], None],
        on_close: Callable[[str | None], None],
        limits: PipeLimits,
    ) -> None:
        self._reader = reader
        self._input, self._writer = transports
        self._on_request = on_request
        self._on_notification = on_notification
        self._on_close = on_close
        self._limits = limits
        self._peer = JsonRpcPeer()
        self._pending = PendingRequests()
        self._closed = False
        self._task = asyncio.create_task(self._read(), name="json-rpc reader")

    @property
    def is_closed(self) -> bool:
        """Whether the connection is lost or closed; then every request raises :class:`RpcClosedError`."""
        return self._closed

    async def request(self, method: str, params: JsonObject | None, *, timeout: float) -> Any:
        """Ask and wait for the answer, at most ``timeout`` seconds; the peer is told when nobody waits any more.

        Raises:
            RpcError: the peer answered with an error, or the request is too large.
            RpcTimeoutError: no answer within the deadline, or the peer reads nothing.
            RpcClosedError: the connection is lost.
        """
        if self._closed or self._writer.is_closing():
            raise RpcClosedError(f"{method}: the connection is closed")
        if not self._has_room():
            raise RpcTimeoutError(f"{method}: {self._writer.get_write_buffer_size()} bytes wait to be read already")
        number, framed = self._peer.request(method, params)
        self._writer.write(framed)
        try:
            return await self._pending.wait(number, method, timeout)
        except (RpcTimeoutError, asyncio.CancelledError):
            self._write(rpc.notification("$/cancelRequest", {"id": number}))
            raise

    def notify(self, method: str, params: JsonObject) -> None:
        """Tell the peer something; silently nothing when it is gone or reads nothing."""
        self._write(rpc.notification(method, params))

    async def aclose(self, *, timeout: float = 1.0) -> None:
        """Close the connection; what was written before may still be read for ``timeout`` seconds."""
        self._task.cancel()
        await asyncio.wait([self._task])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._writer.get_write_buffer_size() and not self._writer.is_closing():
                    await asyncio.sleep(0.01)
        if not self._writer.is_closing():
            self._writer.abort()
        self._input.close()
        await asyncio.sleep(0)  # the transports close in the loop's next turn

    def lost(self) -> None:
        """The peer has closed its end of our output: it ends. What it said last is still heard, until it stops talking.

        It may never: a program that it started can hold its end of our input.
        """
        asyncio.get_running_loop().call_later(self._limits.last_words_seconds, self._task.cancel)

    def _has_room(self) -> bool:
        return self._writer.get_write_buffer_size() <= self._limits.unread_bytes

    def _write(self, message: rpc.JsonMessage) -> None:
        if not self._closed and not self._writer.is_closing() and self._has_room():
            self._writer.write(frame(message))

    async def _read(self) -> None:
        problem: str | None = None
        try:
            while data := await self._reader.read(self._limits.chunk_bytes):
                for message in self._peer.receive(data):
                    self._dispatch(message)
                await asyncio.sleep(0)  # a peer that floods gets its share of the loop, not all of it
        except (OSError, BrokenPeerError) as error:
            problem = str(error)
        finally:
            self._closed = True
            self._pending.fail_all(lambda: RpcClosedError("the connection was lost"))
            self._on_close(problem)

    def _dispatch(self, message: rpc.Message) -> None:
        match message:
            case rpc.Response(number, result):
                self._pending.resolve(number, result)
            case rpc.ErrorResponse(number, code, text):
                self._pending.fail(number, rpc.RpcError(code, text))
            case rpc.Notification(method, params):
                self._on_notification(method, params)
            case rpc.Request(number, method, params):
                try:
                    self._write(rpc.response(number, self._on_request(method, params)))
                except rpc.RpcError as error:
                    self._write(rpc.error_response(number, error.code, str(error)))
            case rpc.ParseError(number, code, text):
                self._write(rpc.error_response(number, code, text))
            case _:
                assert_never(message)


async def open_connection(
    incoming: int,
    outgoing: int,
    on_request: Callable[[str, JsonObject], object],
    on_notification: Callable[[str, JsonObject], None],
    on_close: Callable[[str | None], None],
    limits: PipeLimits = PipeLimits(),
) -> JsonRpcConnection:
    """Return a connection over two file descriptors, which it takes.

    Raises:
        ValueError: they are no pipes, sockets or terminals.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=limits.chunk_bytes)
    source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb", 0))
    sink, output = await loop.connect_write_pipe(_Output, os.fdopen(outgoing, "wb", 0))
    connection = JsonRpcConnection(reader, (source, sink), on_request, on_notification, on_close, limits)
    output.on_lost = connection.lost
    return connection


class _Output(asyncio.Protocol):
    """Learns that nobody will ever read our output again."""

    def __init__(self) -> None:
        self.on_lost: Callable[[], None] = lambda: None

    def connection_lost(self, exc: Exception | None) -> None:
        self.on_lost()
