"""Debug log of the messages of a connection, one line each: ``IDE -> POST /mcp: {"jsonrpc": "2.0", ...}``.

Only bodies are written, since headers hold the tokens, and in them the values of members that hold secrets are hidden:
credentials of push notifications, and the environment and headers of MCP servers. A :class:`WireRecord` keeps messages
in memory instead, for a user who asks later.
"""

import asyncio
import logging
import re
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from isthmus.record import record

WIRE_LOG = logging.getLogger("isthmus.wire")
MAXIMUM_CHARACTERS = 20_000
"""Maximum length of a body; the longest context that an IDE sends fits."""

_SECRETS = re.compile(
    r"""
    (?P<kept>"[\w-]*(?:token|credentials|authorization|password|secret|api[-_]?key)"\s*:\s*)"[^"\\]*+(?:\\.[^"\\]*+)*"?
    | (?P<kept_object>"(?:env|headers)"\s*:\s*)
      (?: \{[^{}"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*"?[^{}"]*+)*(?:\}|\{.*)?
        | \[[^\[\]"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*"?[^\[\]"]*+)*(?:\]|\[.*)? )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Members whose values are hidden; behind one with an object or list inside, the rest of the body is hidden, too."""
_LINE = re.compile(r"(?P<link>\S+) (?P<arrow>->|<-) (?P<head>.+?)(?:: (?P<body>.*))?", re.DOTALL)


@record
class WireMessage:
    """One message as the log has it. ``arrow`` is ``->`` if the side that logs has sent it, else ``<-``.

    ``head`` is a request line, a status, or "event" with the id of the event.
    """

    link: str
    arrow: str
    head: str
    body: str


class WireLog:
    """Writes the messages of a connection that is called ``link``, at the level debug."""

    def __init__(self, link: str) -> None:
        self._link = link

    def sent(self, head: str, body: str | bytes = "") -> None:
        """Write a message that was sent."""
        self._write("->", head, body)

    def received(self, head: str, body: str | bytes = "") -> None:
        """Write a message that came."""
        self._write("<-", head, body)

    def _write(self, arrow: str, head: str, body: str | bytes) -> None:
        if not WIRE_LOG.isEnabledFor(logging.DEBUG):
            return
        text = body if isinstance(body, str) else body.decode("utf-8", "replace")
        cut = f"... ({len(text)} characters)" if len(text) > MAXIMUM_CHARACTERS else ""
        text = without_secrets(text[:MAXIMUM_CHARACTERS]) + cut
        WIRE_LOG.debug("%s %s %s%s", self._link, arrow, head, f": {text}" if text else "")


@record
class RecordedMessage:
    """One message in a record. ``number`` counts from 1, ``at`` is Unix time; ``body`` is cut, and has no secrets."""

    number: int
    at: float
    link: str
    arrow: str
    body: str


class WireRecord:
    """Record of the newest messages of all connections of a companion. ``clock`` returns Unix time in seconds.

    To add a message is cheap: secrets are hidden by :func:`without_secrets` when somebody reads it.
    """

    def __init__(
        self, maximum_messages: int = 1000, maximum_bytes: int = 2**21, clock: Callable[[], float] = time.time
    ) -> None:
        self._messages: deque[tuple[int, float, str, str, str | bytes]] = deque(maxlen=maximum_messages)
        self._maximum_bytes = maximum_bytes
        self._bytes = 0
        self._clock = clock
        self._changed = asyncio.Event()
        self.last = 0
        """Number of the newest message."""

    def sent(self, link: str, body: str | bytes) -> None:
        """Add a message that was sent to ``link``."""
        self._add(link, "->", body)

    def received(self, link: str, body: str | bytes) -> None:
        """Add a message that came from ``link``."""
        self._add(link, "<-", body)

    def _add(self, link: str, arrow: str, body: str | bytes) -> None:
        kept = body if len(body) <= MAXIMUM_CHARACTERS and body.isascii() else _cut(body)
        size = len(kept)
        messages = self._messages
        while messages and (len(messages) == messages.maxlen or self._bytes + size > self._maximum_bytes):
            self._bytes -= len(messages.popleft()[4])
        self.last += 1
        messages.append((self.last, self._clock(), link, arrow, kept))
        self._bytes += size
        self._changed.set()

    def after(self, number: int) -> list[RecordedMessage]:
        """Return the messages after a number, oldest first; all of them if the number is another companion's."""
        number = number if number <= self.last else 0
        return [
            RecordedMessage(found, at, link, arrow, without_secrets(_text(body)))
            for found, at, link, arrow, body in self._messages
            if found > number
        ]

    async def wait(self, number: int, seconds: float) -> None:
        """Wait until there is a message after a number, at most ``seconds``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.last == number:
                    self._changed.clear()
                    await self._changed.wait()


def _cut(body: str | bytes) -> bytes:
    """Return the kept part of a body in UTF-8, since other texts take up to four bytes per character."""
    start = body[:MAXIMUM_CHARACTERS]
    kept = start.encode("utf-8", "replace") if isinstance(start, str) else start
    return kept if len(start) == len(body) else kept + b"... (%d in all)" % len(body)


def _text(body: str | bytes) -> str:
    return body if isinstance(body, str) else body.decode("utf-8", "replace")


def without_secrets(body: str) -> str:
    """Return a body without the values of members that hold secrets."""
    return _SECRETS.sub(_hide, body)


def _hide(found: re.Match[str]) -> str:
    return f'{found["kept"]}"[hidden]"' if found["kept"] else f'{found["kept_object"]}{{"[hidden]": ""}}'


def read_line(line: str) -> WireMessage | None:
    """Return the message in the text of a record of the log; None if it is not one."""
    found = _LINE.fullmatch(line)
    return WireMessage(found["link"], found["arrow"], found["head"], found["body"] or "") if found else None
