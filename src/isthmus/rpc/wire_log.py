"""Debug log of the messages of a connection, one line each: ``IDE -> POST /mcp: {"jsonrpc": "2.0", ...}``.

Only bodies are written, since headers hold the tokens, and in them the values of members that hold secrets are hidden:
credentials of push notifications, and the environment and headers of MCP servers.
"""

import logging
import re
from dataclasses import dataclass

WIRE_LOG = logging.getLogger("isthmus.wire")
MAXIMUM_CHARACTERS = 20_000
"""Maximum length of a body; the longest context that an IDE sends fits."""

_SECRETS = re.compile(
    r"""
    (?P<kept>"[\w-]*(?:token|credentials|authorization|password|secret|api[-_]?key)"\s*:\s*)"(?:[^"\\]|\\.)*+"?
    | (?P<kept_object>"(?:env|headers)"\s*:\s*)
      (?: \{(?:[^{}"]|"(?:[^"\\]|\\.)*+"?)*+(?:\}|\{.*)? | \[(?:[^\[\]"]|"(?:[^"\\]|\\.)*+"?)*+(?:\]|\[.*)? )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Members whose values are hidden; behind one with an object or list inside, the rest of the body is hidden, too."""
_LINE = re.compile(r"(?P<link>\S+) (?P<arrow>->|<-) (?P<head>.+?)(?:: (?P<body>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
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
        text = _SECRETS.sub(_hide, text[:MAXIMUM_CHARACTERS]) + cut
        WIRE_LOG.debug("%s %s %s%s", self._link, arrow, head, f": {text}" if text else "")


def _hide(found: re.Match[str]) -> str:
    return f'{found["kept"]}"[hidden]"' if found["kept"] else f'{found["kept_object"]}{{"[hidden]": ""}}'


def read_line(line: str) -> WireMessage | None:
    """Return the message in the text of a record of the log; None if it is not one."""
    found = _LINE.fullmatch(line)
    return WireMessage(found["link"], found["arrow"], found["head"], found["body"] or "") if found else None
