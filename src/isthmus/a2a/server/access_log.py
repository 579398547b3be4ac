"""Access log: one line per request with user, method, task, result and duration.

The line is written when the answer has ended, which may take hours for a stream. It contains nothing of the request's
body or headers. :mod:`isthmus.app.logs` formats it.
"""

import logging
import time
from dataclasses import dataclass, field

from starlette.types import Scope

KEY = "isthmus.note"
"""Key of the note in the ASGI scope of its request."""
SHOWN_ID = 100
"""Maximum number of characters of a task's id, which a client may have invented."""

log = logging.getLogger("isthmus.access")


@dataclass(slots=True)
class RequestNote:
    """Content of a request's log line, filled in while the request is answered. ``error`` is a JSON-RPC code."""

    method: str
    user: str = ""
    task_id: str = ""
    status: int = 0
    error: int | None = None
    level: int = logging.INFO
    began: float = field(default_factory=time.monotonic)

    def write(self) -> None:
        """Write the line."""
        if not log.isEnabledFor(self.level):
            return
        seconds = time.monotonic() - self.began
        fields = {
            "user": self.user or "-",
            "method": self.method,
            "task": self.task_id[:SHOWN_ID] or "-",
            "status": self.status,
            "error": self.error,
            "duration": round(seconds, 4),
        }
        error = "" if self.error is None else f" error={self.error}"
        log.log(
            self.level,
            "%s %s task=%s %d%s %.1f ms",
            self.user or "-",
            self.method,
            self.task_id[:SHOWN_ID] or "-",
            self.status,
            error,
            seconds * 1000,
            extra={"fields": fields},
        )


def begin_note(scope: Scope) -> RequestNote:
    """Begin the note of a request. Its method is the HTTP method and path until the method of A2A is known."""
    note = scope[KEY] = RequestNote(f"{scope['method']} {scope['path'][:80]!r}")
    return note


def note_of(scope: Scope) -> RequestNote:
    """Return the note of a request."""
    found: RequestNote = scope[KEY] if KEY in scope else begin_note(scope)
    return found
