"""One line for each request: who asked for what, about which task, how it ended and how long it took.

The line is written when the answer has ended, which for a stream may be hours later. Deliberately not here: how lines
look and where they go (:mod:`isthmus.app.logs`). Nothing of a request's content or headers is in them.
"""

import logging
import time
from dataclasses import dataclass, field

from starlette.types import Scope

KEY = "isthmus.note"
SHOWN_ID = 100
"""Characters of a task's id, which a client may have made up."""

log = logging.getLogger("isthmus.access")


@dataclass(slots=True)
class RequestNote:
    """What the line will say; filled in while the request is answered. ``error`` is a JSON-RPC code."""

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
    """Begin the note of a request; its method is that of HTTP and its path until more is known."""
    note = scope[KEY] = RequestNote(f"{scope['method']} {scope['path'][:80]!r}")
    return note


def note_of(scope: Scope) -> RequestNote:
    """Return the note of a request."""
    found: RequestNote = scope[KEY] if KEY in scope else begin_note(scope)
    return found
