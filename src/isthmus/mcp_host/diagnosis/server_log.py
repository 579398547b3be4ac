"""The latest output of a server besides MCP messages: error output, and junk on its standard output. No I/O."""

from collections import deque
from collections.abc import Callable

from isthmus.mcp_host.diagnosis.listening import listening_at
from isthmus.mcp_host.diagnosis.telling_lines import telling_lines

MAXIMUM_BYTES = 64 * 1024
MAXIMUM_LINE = 2_000
MAXIMUM_LINES = 500
"""Maximum number of lines kept of one chunk; the first ones are left out."""


class ServerLog:
    """The last lines of a server's output, limited in size. ``exit_code`` is None while it runs, and for a URL.

    ``sandbox`` describes its sandbox after the start, if its configuration asks for one. ``on_line`` gets each line as
    it arrives.
    """

    def __init__(self, on_line: Callable[[str], None] | None = None) -> None:
        self._on_line = on_line
        self._lines: deque[str] = deque()
        self._size = 0
        self._open = b""
        self.exit_code: int | None = None
        self.sandbox = ""
        self.left_out = 0
        """Number of the server's notifications that were left out because they violate MCP."""
        self.first_left_out = ""
        """Method of the first of them, and the reason."""

    def feed(self, data: bytes) -> None:
        """Add error output as it arrives."""
        *lines, self._open = (self._open + data).split(b"\n")
        if len(lines) > MAXIMUM_LINES:
            self.add(f"[{len(lines) - MAXIMUM_LINES} lines are left out]".encode())
        for line in lines[-MAXIMUM_LINES:]:
            self.add(line)
        if len(self._open) > MAXIMUM_LINE:
            self.add(self._open)
            self._open = b""

    def add(self, line: bytes) -> None:
        """Add one line."""
        text = line[:MAXIMUM_LINE].decode("utf-8", "replace").rstrip("\r")
        if self._on_line is not None:
            self._on_line(text)
        self._lines.append(text)
        self._size += len(text) + 1
        while self._size > MAXIMUM_BYTES:
            self._size -= len(self._lines.popleft()) + 1

    def leave_out(self, reason: str) -> None:
        """Count a notification that violates MCP. Only the first one is logged, so that a flood takes one line."""
        self.left_out += 1
        if self.left_out == 1:
            self.first_left_out = reason[:MAXIMUM_LINE]
            self.add(f"[a notification that does not fit MCP is left out; more are only counted: {reason}]".encode())

    @property
    def exit_text(self) -> str:
        """The way in which the process ended, such as `` with exit code 3`` or `` by signal 9``; empty if unknown."""
        code = self.exit_code
        if code is None:
            return ""
        return f" by signal {-code}" if code < 0 else f" with exit code {code}"

    @property
    def last_words(self) -> str:
        """Last output that tells why it ended, behind ``; its last output:``; empty without any output."""
        found = "\n".join(telling_lines(self._all_lines()[-MAXIMUM_LINES:]))
        return f"; its last output: {found}" if found else ""

    @property
    def listening_at(self) -> str | None:
        """The URL on this machine at which the server says that it listens; None if it does not say so."""
        return listening_at(self._all_lines())

    def tail(self, lines: int = 5) -> str:
        """Return the last lines that are not empty, joined by newlines."""
        return "\n".join([line for line in self._all_lines() if line.strip()][-lines:])

    def _all_lines(self) -> list[str]:
        return [*self._lines, self._open[:MAXIMUM_LINE].decode("utf-8", "replace")]
