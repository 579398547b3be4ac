"""The messages between the host and one server, with times, for diagnosis. Limited in size.

Pure, apart from the clock. Secrets are removed before a message is stored, in each of its strings separately, so that
neither escapes nor cuts reveal them. :mod:`isthmus.mcp_host.transports.traced` writes it.
"""

import json
import time
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, cast

from isthmus.record import record

MAXIMUM_ENTRIES = 500
MAXIMUM_TEXT = 4_000
"""Maximum number of stored characters of a message, besides its method, id and result."""


class TraceKind(Enum):
    """Kind of a trace entry."""

    OPENING = "opening"
    """A transport is being opened: a program is started, or a URL is contacted."""
    OPEN = "open"
    SENT = "sent"
    RECEIVED = "received"
    BROKEN = "broken"
    """The server sent something other than an MCP message, or the connection broke."""
    CLOSED = "closed"


@record
class TraceEntry:
    """A message, or another event of a connection.

    ``at`` is in seconds since the first entry, ``size`` in bytes; ``text`` is the message's JSON, cut. ``method`` is
    the method of a request or notification; of an answer, the method of its request. ``result`` is stored only for
    answers to initialize and server/discover. ``is_error``: the message is an error.
    """

    at: float
    kind: TraceKind
    text: str = ""
    size: int = 0
    method: str = ""
    id: str | int | None = None
    is_answer: bool = False
    is_error: bool = False
    result: Mapping[str, Any] | None = None


HANDSHAKES = ("initialize", "server/discover")


class Trace:
    """The first entries of one connection, in order; ``dropped`` counts the entries over the limit.

    ``hide`` removes the secrets from a text.
    """

    def __init__(self, hide: Callable[[str], str] = str) -> None:
        self._hide = hide
        self.entries: list[TraceEntry] = []
        self.dropped = 0
        self._began: float | None = None
        self._methods: dict[str | int, str] = {}

    def happened(self, kind: TraceKind, text: str = "") -> None:
        """Add an entry that is not a message."""
        self._add(TraceEntry(self._now(), kind, self._hide(text)[:MAXIMUM_TEXT]))

    def message(self, kind: TraceKind, message: Mapping[str, Any], size: int) -> None:
        """Add a JSON-RPC message; `size` is in bytes."""
        key, method = message.get("id"), message.get("method")
        is_answer = method is None
        if kind is TraceKind.SENT and key is not None and isinstance(method, str):
            self._methods[key] = method
        if is_answer and key is not None:
            # A sent answer belongs to a request of the server, which uses its own ids.
            method = self._methods.pop(key, "") if kind is TraceKind.RECEIVED else ""
        method = method if isinstance(method, str) else ""
        shown = cast("Mapping[str, Any]", _masked(message, self._hide))
        result: object = shown.get("result") if method in HANDSHAKES else None
        self._add(
            TraceEntry(
                self._now(),
                kind,
                json.dumps(shown, ensure_ascii=False, separators=(",", ":"))[:MAXIMUM_TEXT],
                size,
                method,
                key if isinstance(key, str | int) else None,
                is_answer,
                "error" in message,
                result if isinstance(result, dict) else None,  # pyright: ignore[reportUnknownArgumentType] - JSON
            )
        )

    def _now(self) -> float:
        now = time.monotonic()
        if self._began is None:
            self._began = now
        return now - self._began

    def _add(self, entry: TraceEntry) -> None:
        if len(self.entries) < MAXIMUM_ENTRIES:
            self.entries.append(entry)
        else:
            self.dropped += 1


def _masked(value: object, hide: Callable[[str], str]) -> object:
    match value:
        case str():
            return hide(value)
        case dict():
            return {key: _masked(item, hide) for key, item in cast("dict[str, object]", value).items()}
        case list():
            return [_masked(item, hide) for item in cast("list[object]", value)]
        case _:
            return value
