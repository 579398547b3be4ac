"""Audit log: who did what, and how it ended, as one line of JSON for each request. The line's content; no I/O.

Unlike the access log it is written when a request has had its effect and not when its answer ends. It says how the user
was authenticated, and has the answers to confirmations. It has no text of a prompt, and of a token only its id. All
characters but printable ASCII are escaped, so that no name can begin a line. The file is in
:mod:`isthmus.a2a.server.logs.audit_file`.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from isthmus.a2a.protocol.jsonrpc import LIMIT_REACHED
from isthmus.a2a.server.logs.access_log import SHOWN_ID, RequestNote

REFUSING = (401, 403, 429)
"""HTTP statuses that refuse the user and not the request."""
MAXIMUM_TEXT = 200
"""Maximum number of characters of each text in a line."""
MAXIMUM_ANSWERS = 50
"""Maximum number of answers in a line."""
WINDOW_SECONDS = 60.0
ANONYMOUS_LINES = 120
"""Maximum number of lines in a minute about requests without a valid token; they could fill the disk."""
REFUSED_LINES = 600
"""Maximum number of lines in a minute about users who are refused."""


def is_audited(note: RequestNote) -> bool:
    """Return whether a request belongs into the log: all but those for what is public, and browsers' questions."""
    return bool(note.auth) or note.status >= 400 or not note.method.startswith(("GET ", "HEAD ", "OPTIONS "))


def outcome_of(note: RequestNote) -> str:
    """Return ``ok``, ``refused`` (the user may not, or has reached a limit), ``failed`` or ``left`` (the client)."""
    if note.status in REFUSING or note.error == LIMIT_REACHED:
        return "refused"
    if note.status == 499:
        return "left"
    return "ok" if note.error is None and 200 <= note.status < 400 else "failed"


def request_line(note: RequestNote, now: float) -> bytes:
    """Return the line of a request at Unix time ``now``."""
    answers = [
        {"call": _cut(answer.call_id), "tool": _cut(answer.tool), "option": _cut(answer.option)}
        for answer in note.answers[:MAXIMUM_ANSWERS]
    ]
    return _line(
        now,
        {
            "event": "request",
            "user": _cut(note.user),
            "auth": note.auth or "none",
            "token_id": note.token_id or None,
            "remote": _cut(note.remote),
            "method": _cut(note.method),
            "task": note.task_id[:SHOWN_ID] or None,
            "outcome": outcome_of(note),
            "status": note.status or None,
            "error": note.error,
            "reason": _cut(note.reason) or None,
            "answers": answers or None,
        },
    )


def missing_line(event: str, count: int, now: float) -> bytes:
    """Return a line about lines that are not there: ``suppressed`` because there were too many, or ``lost``."""
    return _line(now, {"event": event, "count": count})


def _line(now: float, fields: Mapping[str, Any]) -> bytes:
    time = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    given = {name: value for name, value in fields.items() if value is not None}
    return json.dumps({"time": time, **given}, ensure_ascii=True).encode("ascii") + b"\n"


def _cut(text: str) -> str:
    return text if len(text) <= MAXIMUM_TEXT else text[: MAXIMUM_TEXT - 3] + "..."


class LineBudget:
    """The number of lines of one kind in each window of a minute, and how many were left out."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._began = float("-inf")
        self._used = 0
        self._left_out = 0

    def take(self, now: float) -> bool:
        """Return whether a line may be written at monotonic time ``now``; it is counted in either case."""
        if now - self._began >= WINDOW_SECONDS:
            self._began, self._used = now, 0
        self._used += 1
        if self._used <= self._maximum:
            return True
        self._left_out += 1
        return False

    def left_out(self, now: float, *, always: bool = False) -> int:
        """Return the number of lines left out in a window that is over, once; ``always``: in this one, too."""
        if not self._left_out or not (always or now - self._began >= WINDOW_SECONDS):
            return 0
        count, self._left_out = self._left_out, 0
        return count
