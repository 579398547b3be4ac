"""Client of MessagePack-RPC, which Neovim speaks: a codec without I/O, and an asyncio connection over it.

Text that is not UTF-8 (file names, Latin-1 buffers) is carried by surrogate escapes in both directions. Requests of the
peer are answered with an error.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, assert_never, cast

import msgpack

from isthmus.rpc.messages import ErrorResponse, Notification, Request, RequestId, Response, RpcError
from isthmus.rpc.pending import PendingRequests, RpcClosedError

MAXIMUM_MESSAGE_BYTES = 256 * 1024 * 1024
"""Maximum size of a message; a larger one ends the connection."""


Message: TypeAlias = Request | Notification | Response | ErrorResponse


class RpcCodec:
    """Converts between bytes and messages. Extension types (Neovim's handles) become the integer in them."""

    def __init__(self) -> None:
        self._unpacker = msgpack.Unpacker(
            raw=False,
            strict_map_key=False,
            ext_hook=_extension,
            unicode_errors="surrogateescape",
            max_buffer_size=MAXIMUM_MESSAGE_BYTES,
        )
        self._packer = msgpack.Packer(unicode_errors="surrogateescape")

    def request(self, id: int, method: str, params: Iterable[object]) -> bytes:  # noqa: A002 (the field's name)
        """Return a request, whose response has the same ``id``."""
        return self._pack([0, id, method, list(params)])

    def notification(self, method: str, params: Iterable[object]) -> bytes:
        """Return a notification."""
        return self._pack([2, method, list(params)])

    def error(self, id: RequestId, text: str) -> bytes:  # noqa: A002
        """Return the response to a request that is not served."""
        return self._pack([1, id, text, None])

    def _pack(self, message: list[object]) -> bytes:
        try:
            return self._packer.pack(message)
        except ValueError as error:
            raise RpcError(0, f"expected Unicode text, received some that cannot be encoded: {error}") from error

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that ``data`` completes.

        Raises:
            RpcError: the bytes are not MessagePack-RPC, or a message is too large. Nothing can be read after it.
        """
        try:
            self._unpacker.feed(data)
            return [_message(value) for value in self._unpacker]
        except (ValueError, TypeError, msgpack.UnpackException) as error:  # TypeError: a map as the key of a map
            raise RpcError(0, f"expected MessagePack-RPC messages, received something else: {error}") from error


def _extension(_code: int, data: bytes) -> int:
    return cast(int, msgpack.unpackb(data))


def _message(value: object) -> Message:
    fields = cast("list[Any]", value) if isinstance(value, list) else []
    match fields:
        case [0, int(number), str(method), params]:
            return Request(number, method, params)
        case [1, int(number), None, result]:
            return Response(number, result)
        case [1, int(number), error, _]:
            return ErrorResponse(number, 0, _error_text(error))
        case [2, str(method), list()]:
            return Notification(method, tuple(fields[2]))
        case _:
            raise ValueError(f"not a request, response or notification: {str(fields)[:80]}")


class RpcConnection:
    """An open connection, on which requests may overlap.

    ``on_notification`` gets the notifications in order, and ``on_close`` is called once. Both run on the event loop
    and must return at once.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_notification: Callable[[Notification], None],
        on_close: Callable[[], None],
    ) -> None:
        self._writer = writer
        self._codec = RpcCodec()
        self._on_notification = on_notification
        self._on_close = on_close
        self._ids = itertools.count(1)
        self._pending = PendingRequests()
        self._closed = False
        self._task = asyncio.create_task(self._read(reader), name="msgpack-rpc reader")

    @property
    def is_closed(self) -> bool:
        """Whether the connection is lost or closed; then every request raises :class:`RpcClosedError`."""
        return self._closed

    async def request(self, method: str, *params: object, timeout: float) -> Any:
        """Send a request and wait for its answer, at most ``timeout`` seconds.

        Raises:
            RpcError: the peer answered with an error.
            RpcTimeoutError: there was no answer within the deadline.
            RpcClosedError: the connection is lost.
        """
        if self._closed:
            raise RpcClosedError(f"{method}: the connection is closed")
        number = next(self._ids)
        self._writer.write(self._codec.request(number, method, params))
        try:
            return await self._pending.wait(number, method, timeout, self._writer.drain)
        except OSError as error:
            raise RpcClosedError(f"{method}: {error}") from error

    def notify(self, method: str, *params: object) -> None:
        """Send a notification; do nothing if the connection is lost."""
        if not self._closed:
            self._writer.write(self._codec.notification(method, params))

    async def aclose(self) -> None:
        """Close the connection; requests that wait raise :class:`RpcClosedError`."""
        self._task.cancel()
        await asyncio.wait([self._task])
        self._finish()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(1):
                await self._writer.wait_closed()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while data := await reader.read(65536):
                for message in self._codec.feed(data):
                    self._dispatch(message)
        except (OSError, RpcError):
            pass  # a broken stream ends like a closed one
        finally:
            self._finish()

    def _dispatch(self, message: Message) -> None:
        match message:
            case Response(number, result):
                self._pending.resolve(number, result)
            case ErrorResponse(number, code, text):
                self._pending.fail(number, RpcError(code, text))
            case Notification():
                self._on_notification(message)
            case Request():
                self._writer.write(self._codec.error(message.id, f"{message.method}: not served here"))
            case _:
                assert_never(message)

    def _finish(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        self._pending.fail_all(lambda: RpcClosedError("the connection was lost"))
        self._on_close()


def _error_text(error: object) -> str:
    """Return the text of an error: Neovim's are ``[kind, text]``, other peers' may be anything."""
    match error:
        case [int(), str(text)]:
            return text
        case _:
            return str(error)


async def connect(
    address: str,
    on_notification: Callable[[Notification], None],
    on_close: Callable[[], None],
    *,
    timeout: float = 5.0,
) -> RpcConnection:
    """Connect to ``host:port`` or the path of a Unix socket, in at most ``timeout`` seconds.

    Raises:
        RpcClosedError: no program listens there.
    """
    try:
        async with asyncio.timeout(timeout):
            host, separator, port = address.rpartition(":")
            if separator and "/" not in address and port.isdigit():
                reader, writer = await asyncio.open_connection(host.strip("[]") or "127.0.0.1", int(port))
            else:
                reader, writer = await asyncio.open_unix_connection(address)
    except (OSError, TimeoutError) as error:
        reason = error if str(error) else f"no answer within {timeout:g} s"
        raise RpcClosedError(f"cannot connect to {address}: {reason}") from error
    return RpcConnection(reader, writer, on_notification, on_close)
