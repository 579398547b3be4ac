"""Access log: one line per request with user, method, task, result and duration.

The line is written when the answer has ended, which may take hours for a stream. It contains nothing of the request's
body or headers. :mod:`isthmus.programs.process.logs` formats it.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.types import Scope

from isthmus.record import record

KEY = "isthmus.note"
"""Key of the note in the ASGI scope of its request."""
SHOWN_ID = 100
"""Maximum number of characters of a task's id, which a client may have invented."""

log = logging.getLogger("isthmus.access")


@record
class AnswerNote:
    """An answer to a confirmation: the ids of the call and of the chosen option, and the name of the tool."""

    call_id: str
    tool: str
    option: str


@dataclass(slots=True)
class RequestNote:
    """Content of a request's log line, filled in while the request is answered. ``error`` is a JSON-RPC code.

    Of the other fields the audit log has more (:mod:`isthmus.a2a.server.logs.audit`): ``auth`` says how the user was
    authenticated, ``token_id`` is the id of the token, ``reason`` says why the request was refused.
    """

    method: str
    user: str = ""
    task_id: str = ""
    status: int = 0
    error: int | None = None
    level: int = logging.INFO
    auth: str = ""
    token_id: str = ""
    remote: str = ""
    reason: str = ""
    answers: tuple[AnswerNote, ...] = ()
    audit: "Callable[[RequestNote], None] | None" = None
    began: float = field(default_factory=time.monotonic)

    @property
    def is_audited(self) -> bool:
        """Whether there is an audit log in which this request is not yet."""
        return self.audit is not None

    @property
    def operation(self) -> str:
        """Method of A2A; empty if the request has none that is known."""
        return "" if " " in self.method else self.method

    def record(self) -> None:
        """Write the line of the audit log, if there is one and it does not have this request yet."""
        audit, self.audit = self.audit, None
        if audit is not None:
            audit(self)

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


def begin_note(scope: Scope, audit: Callable[[RequestNote], None] | None = None) -> RequestNote:
    """Begin the note of a request. Its method is the HTTP method and path until the method of A2A is known."""
    note = scope[KEY] = RequestNote(f"{scope['method']} {scope['path'][:80]!r}", audit=audit)
    client = scope.get("client")
    note.remote = str(client[0]) if client is not None else ""
    return note


def note_of(scope: Scope) -> RequestNote:
    """Return the note of a request."""
    found: RequestNote = scope[KEY] if KEY in scope else begin_note(scope)
    return found
