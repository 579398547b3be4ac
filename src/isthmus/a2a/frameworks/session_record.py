"""The AgentRecord of a session, as adapters of frameworks keep their state in it.

The state of a framework grows with each step and mostly repeats what it was before. Each value is stored once, under
its digest, and each step adds to the record only what is new. Entries with names of their own refer to the values.
"""

import base64
import hashlib
import json
from typing import Any

from isthmus.agent.session.session import Session
from isthmus.encoding.codec import JsonObject
from isthmus.internal_events import AgentRecord

DIGEST_BYTES = 16
"""Number of bytes of SHA-256 that name a value."""
VALUE = "value:"
"""Beginning of the names of values."""


class SessionRecord:
    """The record of a session with the changes that are not stored yet."""

    def __init__(self, session: Session) -> None:
        self._entries: dict[str, Any] = dict(session.record or {})
        self._changes: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """Return a value; None if there is none."""
        return self._entries.get(name)

    def entry(self, name: str) -> dict[str, Any]:
        """Return an entry; an empty one if there is none."""
        return self._entries.get(name, {})

    def names(self, beginning: str) -> list[str]:
        """Return the names of the entries that begin so, in the order in which they were first set."""
        # A list, since a graph that runs in a thread may add entries meanwhile.
        return [name for name in list(self._entries) if name.startswith(beginning)]

    def set(self, name: str, value: JsonObject) -> None:
        """Set an entry."""
        if self._entries.get(name) != value:
            self._entries[name] = self._changes[name] = value

    def remove(self, name: str) -> None:
        """Remove an entry."""
        if self._entries.pop(name, None) is not None:
            self._changes[name] = None

    def put(self, value: object) -> str:
        """Keep a value that JSON can express, and return the name under which it is found."""
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:DIGEST_BYTES]
        name = VALUE + base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if name not in self._entries:
            self._entries[name] = self._changes[name] = value
        return name

    def take_changes(self) -> AgentRecord | None:
        """Return the event that stores what has changed since the last call; None if nothing has."""
        if not self._changes:
            return None
        changes, self._changes = self._changes, {}
        return AgentRecord(changes, merges=True)
