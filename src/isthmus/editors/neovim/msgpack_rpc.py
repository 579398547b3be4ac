"""MessagePack-RPC, the client side: a codec without I/O, and a small asyncio connection over it.

It is what Neovim speaks on its listen address (a Unix socket or host:port). Text that is not UTF-8 (file names,
Latin-1 buffers) is carried by surrogate escapes in both directions. Deliberately not here: serving requests (each is
answered with an error), the stdio transport, and anything that knows Neovim's methods.
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
"""A peer that sends a larger message is cut off."""


Message: TypeAlias = Request | Notification | Response | ErrorResponse


class RpcCodec:
    """Bytes to messages and back. Extension types (Neovim's handles) become the integer inside them."""

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
        """Return a request; the response carries the same ``id``."""
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
            raise RpcError(
                0, f"expected text that is Unicode, received something that cannot be sent: {error}"
            ) from error

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that ``data`` completes.

        Raises:
            RpcError: the bytes are no MessagePack-RPC, or a message exceeds the limit. Nothing can be read after it.
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
    """An open connection. Requests may overlap; notifications go to ``on_notification`` in order, ``on_close`` once.

    Both callbacks run on the event loop and must return at once.
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
        """Ask and wait for the answer; ``timeout`` in seconds.

        Raises:
            RpcError: the peer answered with an error.
            RpcTimeoutError: no answer within the deadline.
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
        """Tell the peer something; silently nothing when the connection is lost."""
        if not self._closed:
            self._writer.write(self._codec.notification(method, params))

    async def aclose(self) -> None:
        """Close the connection; what is still waiting gets :class:`RpcClosedError`."""
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
    """Neovim's errors are ``[kind, text]``; others may send anything."""
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
    """Connect to ``host:port``, or to the Unix socket with that path; ``timeout`` in seconds.

    Raises:
        RpcClosedError: nobody listens there.
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
