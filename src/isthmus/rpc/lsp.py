"""Framing of JSON-RPC 2.0 messages as in LSP, with a Content-Length each. No I/O.

A malformed frame does not affect the next one. :mod:`isthmus.rpc.peer` reads the messages in the frames.
"""

import re
from collections.abc import Iterator
from types import NoneType
from typing import Final

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import encode
from isthmus.rpc import messages as rpc

SERVER_NOT_INITIALIZED: Final = -32002
REQUEST_FAILED: Final = -32803

MAXIMUM_HEADER_BYTES: Final = 4096
MAXIMUM_BODY_BYTES: Final = 64 * 1024 * 1024
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


def frame(message: JsonObject) -> bytes:
    """Return a message with its header."""
    body = encode(message)
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class LspFraming:
    """Frames with a Content-Length each, for a :class:`~isthmus.rpc.peer.JsonRpcPeer`."""

    rules = _RULES
    maximum_malformed = MAXIMUM_MALFORMED

    def __init__(self, maximum_body: int = MAXIMUM_BODY_BYTES) -> None:
        self.maximum_bytes = maximum_body
        self._splitter = FrameSplitter(maximum_body)

    def feed(self, data: bytes) -> Iterator[bytes | rpc.ParseError]:
        """Yield the bodies of the messages that ``data`` completes, and an error for each malformed frame."""
        return self._splitter.feed(data)

    def frame(self, message: JsonObject) -> bytes:
        """Return a message with its header."""
        return frame(message)
