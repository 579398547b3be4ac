"""A JSON-RPC connection over two pipes, for asyncio, and standard input and output as such pipes.

A peer that does not read delays nothing: beyond a maximum of unread output, requests fail at once and notifications
are dropped. :mod:`isthmus.rpc.peer` reads the messages.
"""

import asyncio
import contextlib
import os
import stat
from collections.abc import Callable, Coroutine
from typing import Any, Final, assert_never, cast

from typing_extensions import override

from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.ide.editor import EditorError
from isthmus.record import record
from isthmus.rpc import messages as rpc
from isthmus.rpc.lsp import REQUEST_FAILED, LspFraming, frame
from isthmus.rpc.peer import BrokenPeerError, JsonRpcPeer
from isthmus.rpc.pending import PendingRequests, RpcClosedError, RpcTimeoutError
from isthmus.runtime.running_tasks import RunningTasks
from isthmus.runtime.standard_streams import take_standard_streams

_NO_PIPES: Final = (
    "--editor stdio is started by an editor's plugin, with pipes as its standard input and output; see"
    " docs/reference/editor-port.md"
)


@record(kw_only=True)
class PipeLimits:
    """Limits of a connection over two pipes."""

    unread_bytes: int = 64 * 1024 * 1024
    """Maximum output that waits for a peer that does not read."""
    last_words_seconds: float = 1.0
    """Time for which a peer's output is still read after it stopped reading ours."""
    chunk_bytes: int = 65_536
    """Maximum number of bytes read at once."""


class JsonRpcConnection:
    """A connection, made by :func:`open_connection`.

    The callbacks run on the event loop, in the order of the messages, and return at once. ``on_request`` returns the
    result or a coroutine for it, which may raise :class:`IsthmusError`; or it raises :class:`RpcError`. ``on_close`` is
    called once, with the error of the peer, or None if it just ended.
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
        self._peer = JsonRpcPeer(LspFraming())
        self._pending = PendingRequests()
        self._closed = False
        self._answering = RunningTasks()
        self._task = asyncio.create_task(self._read(), name="json-rpc reader")

    @property
    def is_closed(self) -> bool:
        """Whether the connection is lost or closed; then every request raises :class:`RpcClosedError`."""
        return self._closed

    async def request(self, method: str, params: JsonObject | None, *, timeout: float) -> Any:
        """Send a request and wait for its answer, at most ``timeout`` seconds; if the wait ends early, cancel it.

        Raises:
            RpcError: the peer answered with an error, or the request is too large.
            RpcTimeoutError: there was no answer within the deadline, or the peer does not read.
            RpcClosedError: the connection is lost.
        """
        if self._closed or self._writer.is_closing():
            raise RpcClosedError(f"{method}: the connection is closed")
        if not self._has_room():
            raise RpcTimeoutError(f"{method}: {self._writer.get_write_buffer_size()} bytes already wait to be read")
        number, framed = self._peer.request(method, params)
        self._writer.write(framed)
        try:
            return await self._pending.wait(number, method, timeout)
        except (RpcTimeoutError, asyncio.CancelledError):
            self._write(rpc.notification("$/cancelRequest", {"id": number}))
            raise

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification; do nothing if the peer is gone or does not read."""
        self._write(rpc.notification(method, params))

    async def aclose(self, *, timeout: float = 1.0) -> None:
        """Close the connection; the peer has ``timeout`` seconds to read what was written before."""
        self._task.cancel()
        await self._answering.cancel()
        await asyncio.wait([self._task])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._writer.get_write_buffer_size() and not self._writer.is_closing():
                    await asyncio.sleep(0.01)
        if not self._writer.is_closing():
            self._writer.abort()
        self._input.close()
        await asyncio.sleep(0)  # the transports close in the loop's next turn

    def end_soon(self) -> None:
        """End soon, because the peer does not read any more; its last messages are still taken.

        There is a deadline because our input may never end: a program that the peer started can hold its other end.
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
                await asyncio.sleep(0)  # a peer that floods must not block the loop
        except (OSError, BrokenPeerError) as error:
            problem = str(error)
        finally:
            self._closed = True
            self._pending.fail_all(lambda: RpcClosedError("the connection was lost"))
            self._on_close(problem)

    async def _answer(self, number: rpc.RequestId, work: Coroutine[None, None, object]) -> None:
        """Answer a request once its result is there."""
        try:
            self._write(rpc.response(number, await work))
        except IsthmusError as error:
            self._write(rpc.error_response(number, REQUEST_FAILED, str(error)))

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
                    result = self._on_request(method, params)
                except rpc.RpcError as error:
                    self._write(rpc.error_response(number, error.code, str(error)))
                    return
                if isinstance(result, Coroutine):
                    self._answering.start(self._answer(number, cast("Coroutine[None, None, object]", result)))
                else:
                    self._write(rpc.response(number, result))
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
    """Return a connection over two file descriptors, which are closed with it.

    Raises:
        ValueError: they are not pipes, sockets or terminals.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=limits.chunk_bytes)
    source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb", 0))
    sink, output = await loop.connect_write_pipe(_Output, os.fdopen(outgoing, "wb", 0))
    connection = JsonRpcConnection(reader, (source, sink), on_request, on_notification, on_close, limits)
    output.on_end = connection.end_soon
    return connection


class _Output(asyncio.Protocol):
    """Our output; calls ``on_end`` when its other end is closed."""

    def __init__(self) -> None:
        self.on_end: Callable[[], None] = lambda: None

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.on_end()


def take_pipes() -> tuple[int, int]:
    """Return file descriptors for standard input and output; from now on, what is printed goes to standard error.

    Raises:
        EditorError: they are a terminal, or files.
    """
    if not all(stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) for kind in (os.fstat(0).st_mode, os.fstat(1).st_mode)):
        raise EditorError(_NO_PIPES)
    return take_standard_streams()
