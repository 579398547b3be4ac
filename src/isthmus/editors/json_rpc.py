"""One end of a JSON-RPC 2.0 connection whose messages are framed as in LSP: bytes in, messages out, and back. No I/O.

Both ends may ask. Malformed input is answered with an error and skipped; the next frame is read as if nothing had been.
Deliberately not here: deadlines, which requests are waited for, and any method. The server side of MCP, which has no
requests of the server and other errors, is :mod:`isthmus.ide.mcp.mcp_peer`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from isthmus.codec import JsonObject
from isthmus.editors.rpc_error import RpcError
from isthmus.errors import IsthmusError
from isthmus.ide.mcp import json_rpc_message
from isthmus.ide.mcp.json_rpc_message import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RequestId, request_id_of
from isthmus.json_text import JsonError, decode, encode

SERVER_NOT_INITIALIZED: Final = -32002

MAXIMUM_HEADER_BYTES: Final = 4096
MAXIMUM_BODY_BYTES: Final = 64 * 1024 * 1024
MAXIMUM_BRACKETS: Final = 1_000_000
"""How many lists and objects a message may have, those in texts counted: each costs many times its byte."""
MAXIMUM_MALFORMED: Final = 100
"""A peer that sends so many frames that are no messages speaks something else."""
_HEADER_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"^content-length:[ \t]*([0-9]{1,12})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)


class BrokenPeerError(IsthmusError):
    """What the peer sends is no JSON-RPC at all; nothing more is read."""


# What one frame means. A closed union: match with assert_never.


@dataclass(frozen=True, slots=True)
class Requested:
    """The peer asks; it waits for :meth:`JsonRpcPeer.result` or :meth:`JsonRpcPeer.error` with this ``id``."""

    id: RequestId
    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Notified:
    """The peer tells something."""

    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Answered:
    """The result of our request ``id``."""

    id: int
    result: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """The error that our request ``id`` was answered with, in the peer's words; None: it could not read something."""

    id: int | None
    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """No message; send ``reply``, a whole frame."""

    reply: bytes
    problem: str


Incoming: TypeAlias = Requested | Notified | Answered | Failed | Malformed


@dataclass(frozen=True, slots=True)
class _Skipped:
    problem: str


class FrameSplitter:
    """Splits a stream into frames. At most one header and one body of allowed size are kept in memory."""

    def __init__(self, maximum_body: int = MAXIMUM_BODY_BYTES) -> None:
        self._maximum_body = maximum_body
        self._buffer = bytearray()
        self._body: int | None = None
        self._to_skip = 0
        self._in_long_header = False

    def feed(self, data: bytes) -> Iterator[bytes | _Skipped]:
        """The bodies of the frames that ``data`` completes, in order, and what was skipped between them."""
        self._buffer += data
        while True:
            if self._to_skip:
                skipped = min(self._to_skip, len(self._buffer))
                del self._buffer[:skipped]
                self._to_skip -= skipped
                if self._to_skip:
                    return
            if self._body is None:
                match self._read_header():
                    case str(problem):
                        yield _Skipped(problem)
                    case False:
                        return
                    case True:
                        pass
                continue
            if len(self._buffer) < self._body:
                return
            body = bytes(self._buffer[: self._body])
            del self._buffer[: self._body]
            self._body = None
            yield body

    def _read_header(self) -> str | bool:
        """Take a header off the buffer: whether it was there, or what is wrong with it."""
        end = self._buffer.find(_HEADER_END)
        if end < 0:
            if len(self._buffer) <= MAXIMUM_HEADER_BYTES:
                return False
            del self._buffer[: -(len(_HEADER_END) - 1)]
            was_told, self._in_long_header = self._in_long_header, True
            return False if was_told else f"expected a header of at most {MAXIMUM_HEADER_BYTES} bytes"
        header = bytes(self._buffer[:end])
        del self._buffer[: end + len(_HEADER_END)]
        was_long, self._in_long_header = self._in_long_header, False
        if was_long or end > MAXIMUM_HEADER_BYTES:
            return True if was_long else f"expected a header of at most {MAXIMUM_HEADER_BYTES} bytes"
        found = _LENGTH.search(header)
        if found is None:
            return "expected a header with Content-Length, the number of bytes of the body"
        length = int(found[1])
        if length > self._maximum_body:
            self._to_skip = length
            return f"expected a message of at most {self._maximum_body} bytes, received one of {length}"
        self._body = length
        return True


class JsonRpcPeer:
    """The state of one connection: what was fed, and the ids of our requests."""

    def __init__(self, maximum_body: int = MAXIMUM_BODY_BYTES) -> None:
        self._splitter = FrameSplitter(maximum_body)
        self._maximum_body = maximum_body
        self._malformed = 0
        self._last_id = 0

    def receive(self, data: bytes) -> Iterator[Incoming]:
        """The messages that ``data`` completes, in order; read to the end before the next call.

        Raises:
            BrokenPeerError: there were too many frames that are no messages.
        """
        for frame in self._splitter.feed(data):
            message = _malformed(INVALID_REQUEST, frame.problem) if isinstance(frame, _Skipped) else _message(frame)
            yield message
            if isinstance(message, Malformed):
                self._malformed += 1
                if self._malformed >= MAXIMUM_MALFORMED:
                    raise BrokenPeerError(f"the peer speaks no JSON-RPC, at last: {message.problem}")

    def request(self, method: str, params: JsonObject | None) -> tuple[int, bytes]:
        """A request with an id of its own, and its frame.

        Raises:
            RpcError: it is larger than a message may be.
        """
        self._last_id += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._last_id, "method": method}
        if params is not None:
            message["params"] = params
        frame_ = frame(message)
        if len(frame_) > self._maximum_body:
            raise RpcError(f"{method}: a message of {len(frame_)} bytes is more than {self._maximum_body}")
        return self._last_id, frame_


def notification(method: str, params: JsonObject) -> bytes:
    """The frame of a notification."""
    return frame(json_rpc_message.notification(method, params))


def cancellation(request_id: RequestId) -> bytes:
    """The frame that says that nobody waits for a request any more."""
    return notification("$/cancelRequest", {"id": request_id})


def result(request_id: RequestId, value: object) -> bytes:
    """The frame that answers a request."""
    return frame(json_rpc_message.response(request_id, value))


def error(request_id: RequestId | None, code: int, text: str) -> bytes:
    """The frame that refuses a request; ``request_id`` None: what came could not be read."""
    return frame(json_rpc_message.error_response(request_id, code, text))


def frame(message: JsonObject) -> bytes:
    """A message with its header."""
    body = encode(message)
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _message(body: bytes) -> Incoming:
    if body.count(b"[") + body.count(b"{") > MAXIMUM_BRACKETS:
        return _malformed(PARSE_ERROR, f"expected at most {MAXIMUM_BRACKETS} opening brackets, in texts or outside")
    try:
        value = decode(body, mends_text=True)
    except JsonError as problem:
        return _malformed(PARSE_ERROR, str(problem))
    if not isinstance(value, dict):
        return _malformed(INVALID_REQUEST, "expected one JSON-RPC 2.0 object; there are no batches")
    message = cast("dict[str, Any]", value)
    number, known = message.get("id"), request_id_of(message)
    method, params = message.get("method"), message.get("params")
    if message.get("jsonrpc") != "2.0":
        return _malformed(INVALID_REQUEST, 'expected "jsonrpc": "2.0"', known)
    if method is None and isinstance(known, int) and ("result" in message or "error" in message):
        return _answer(known, message)
    if method is None and number is None and "error" in message:
        return Failed(None, *_problem(message["error"]))
    if not isinstance(method, str) or (number is not None and known is None):
        return _malformed(INVALID_REQUEST, "expected method as a string and id as a string or whole number", known)
    if params is not None and not isinstance(params, Mapping):
        return _malformed(INVALID_PARAMS, f"{method[:200]}: expected params as an object", known)
    arguments = cast(JsonObject, params or {})
    return Notified(method, arguments) if known is None else Requested(known, method, arguments)


def _answer(number: int, message: JsonObject) -> Answered | Failed:
    problem = message.get("error")
    if problem is None:
        return Answered(number, message.get("result"))
    return Failed(number, *_problem(problem))


def _problem(value: object) -> tuple[int, str]:
    fields = cast(JsonObject, value if isinstance(value, Mapping) else {})
    code, text = fields.get("code"), fields.get("message")
    return code if isinstance(code, int) else 0, text if isinstance(text, str) and text else "failed without a reason"


def _malformed(code: int, problem: str, number: RequestId | None = None) -> Malformed:
    return Malformed(error(number, code, problem), problem)
