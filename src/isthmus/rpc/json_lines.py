"""Framing of JSON-RPC 2.0 messages as lines of JSON, as in ACP over standard streams. No I/O.

A malformed line does not affect the next one, and empty lines are ignored.
"""

from collections.abc import Iterator
from types import NoneType
from typing import Final

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import encode
from isthmus.encoding.line_splitter import LineSplitter, LongLine
from isthmus.rpc import messages as rpc

MAXIMUM_LINE_BYTES: Final = 64 * 1024 * 1024

_RULES = rpc.Rules(
    not_object="expected one JSON-RPC 2.0 object a line, received {received}",
    batch="expected one JSON-RPC 2.0 object a line; there are no batches",
    members={
        "jsonrpc": 'expected "jsonrpc": "2.0"',
        "method": "expected method as a string",
        "id": "expected id as a string or whole number",
        "params": "{method:.200}: expected params as an object, received {received}",
    },
    allows_null_id=True,
    response_id_types=(int, NoneType),
)


class LineFraming:
    """Lines of JSON, for a :class:`~isthmus.rpc.peer.JsonRpcPeer`."""

    rules = _RULES
    maximum_malformed = None

    def __init__(self, maximum_bytes: int = MAXIMUM_LINE_BYTES) -> None:
        self.maximum_bytes = maximum_bytes
        self._splitter = LineSplitter(maximum_bytes)

    def feed(self, data: bytes) -> Iterator[bytes | rpc.ParseError]:
        """Yield the lines that ``data`` completes, and an error for each that is too long."""
        for line in self._splitter.feed(data):
            match line:
                case LongLine(size):
                    problem = f"expected a message of at most {self.maximum_bytes} bytes, received one of {size}"
                    yield rpc.ParseError(None, rpc.INVALID_REQUEST, problem)
                case _ if line.strip():
                    yield line
                case _:
                    pass

    def frame(self, message: JsonObject) -> bytes:
        """Return a message as a line."""
        return encode(message) + b"\n"
