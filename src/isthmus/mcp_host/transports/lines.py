"""Parts a byte stream into lines of bounded length: the frames of MCP over standard streams.

Pure. A line is joined once, when it is whole, so that a large one costs no more than its bytes; of one that is too
long only the two ends are kept. Deliberately not here: what a line means.
"""

from dataclasses import dataclass
from typing import TypeAlias

END_BYTES = 4096
"""Number of bytes kept of each end of an oversized line: a JSON-RPC message has its id at one of them."""


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line of more bytes than are taken."""

    size: int
    head: bytes
    tail: bytes


Line: TypeAlias = bytes | LongLine


class LineSplitter:
    """Takes bytes as they come and gives the whole lines, without their newlines."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""
        self._is_long = False

    def feed(self, data: bytes) -> list[Line]:
        """Return the lines that end in `data`."""
        lines: list[Line] = []
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._take(part)
            lines.append(self._end())
        if rest:
            self._take(rest)
        return lines

    def _take(self, part: bytes) -> None:
        self._size += len(part)
        if self._is_long:
            self._tail = (self._tail + part)[-END_BYTES:]
            return
        self._parts.append(part)
        if self._size > self._maximum:
            whole = b"".join(self._parts)
            self._parts.clear()
            self._is_long = True
            self._head, self._tail = whole[:END_BYTES], whole[-END_BYTES:]

    def _end(self) -> Line:
        line = LongLine(self._size, self._head, self._tail) if self._is_long else b"".join(self._parts)
        self._parts.clear()
        self._size, self._is_long = 0, False
        self._head = self._tail = b""
        return line
