"""Splitter of a byte stream into lines of limited length, the frames of MCP and ACP over standard streams.

Pure. The parts of a line are joined only once, when it is complete, so that the cost of a large line is proportional to
its size. Of a line that is too long, only the two ends are kept.
"""

from typing import TypeAlias

from isthmus.record import record

END_BYTES = 4096
"""Number of bytes kept at each end of an oversized line: the id of a JSON-RPC message is usually at one of them."""


@record
class LongLine:
    """A line of more bytes than the maximum."""

    size: int
    head: bytes
    tail: bytes


Line: TypeAlias = bytes | LongLine


class LineSplitter:
    """Incremental splitter: takes bytes as they arrive, and returns complete lines without their newlines."""

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
