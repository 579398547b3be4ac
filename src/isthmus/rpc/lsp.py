"""JSON-RPC 2.0 messages framed as in LSP, with a Content-Length each: bytes in, messages out, and back. No I/O.

Both ends may send requests. A malformed frame does not affect the next one.
"""

import re
from collections.abc import Iterator
from types import NoneType
from typing import Final

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import JsonError, decode, encode
from isthmus.errors import IsthmusError
from isthmus.rpc import messages as rpc

SERVER_NOT_INITIALIZED: Final = -32002

MAXIMUM_HEADER_BYTES: Final = 4096
MAXIMUM_BODY_BYTES: Final = 64 * 1024 * 1024
MAXIMUM_BRACKETS: Final = 1_000_000
"""Maximum number of opening brackets in a message, also inside of texts: a list costs many times its one byte."""
MAXIMUM_MALFORMED: Final = 100
"""Maximum number of frames that are not messages; a peer that sends more speaks another protocol."""
_HEADER_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"^content-length:[ \t]*([0-9]{1,12})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)

_RULES = rpc.Rules(
    not_object="expected one JSON-RPC 2.0 object; there are no batches",
    batch="expected one JSON-RPC 2.0 object; there are no batches",
    members={
        "jsonrpc": 'expected "jsonrpc": "2.0"',
        "method": "expected method as a string and id as a string or whole number",
        "id": "expected method as a string and id as a string or whole number",
        "params": "{method:.200}: expected params as an object",
    },
    allows_null_id=True,
    response_id_types=(int, NoneType),
)


class BrokenPeerError(IsthmusError):
    """The peer does not speak JSON-RPC; nothing more is read from it."""


class FrameSplitter:
    """Splits a stream into frames. At most one header and one body of allowed size are kept in memory."""

    def __init__(self, maximum_body: int = MAXIMUM_BODY_BYTES) -> None:
        self._maximum_body = maximum_body
        self._buffer = bytearray()
        self._body: int | None = None
        self._to_skip = 0
        self._in_long_header = False

    def feed(self, data: bytes) -> Iterator[bytes | rpc.ParseError]:
        """Yield the bodies of the frames that ``data`` completes, in order, and an error for each malformed frame."""
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
                        yield rpc.ParseError(None, rpc.INVALID_REQUEST, problem)
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
        """Remove a header from the buffer. Return whether it was complete, or a problem with it."""
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
    """One end of a connection: the bytes received so far, and the ids of our requests."""

    def __init__(self, maximum_body: int = MAXIMUM_BODY_BYTES) -> None:
        self._splitter = FrameSplitter(maximum_body)
        self._maximum_body = maximum_body
        self._malformed = 0
        self._last_id = 0

    def receive(self, data: bytes) -> Iterator[rpc.Message]:
        """Yield the messages that ``data`` completes, in order; read to the end before the next call.

        Raises:
            BrokenPeerError: too many frames were not messages.
        """
        for frame in self._splitter.feed(data):
            message = frame if isinstance(frame, rpc.ParseError) else _message(frame)
            yield message
            if isinstance(message, rpc.ParseError):
                self._malformed += 1
                if self._malformed >= MAXIMUM_MALFORMED:
                    raise BrokenPeerError(f"the peer does not speak JSON-RPC; its last mistake: {message.text}")

    def request(self, method: str, params: JsonObject | None) -> tuple[int, bytes]:
        """Return the id of a new request, and its frame.

        Raises:
            RpcError: it is larger than a message may be.
        """
        self._last_id += 1
        framed = frame(rpc.request(self._last_id, method, params))
        if len(framed) > self._maximum_body:
            raise rpc.RpcError(0, f"{method}: a message of {len(framed)} bytes is more than {self._maximum_body}")
        return self._last_id, framed


def frame(message: JsonObject) -> bytes:
    """Return a message with its header."""
    body = encode(message)
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _message(body: bytes) -> rpc.Message:
    if body.count(b"[") + body.count(b"{") > MAXIMUM_BRACKETS:
        problem = f"expected at most {MAXIMUM_BRACKETS} opening brackets, in texts or outside"
        return rpc.ParseError(None, rpc.PARSE_ERROR, problem)
    try:
        return rpc.message_of(decode(body, mends_text=True), _RULES)
    except JsonError as problem:
        return rpc.ParseError(None, rpc.PARSE_ERROR, str(problem))
