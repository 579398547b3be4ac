"""Shows logged warnings as notices of the interactive front, above the line that the user is typing.

Python writes unhandled warnings to stderr, which would be into the line of the prompt. That is right if stderr is not
a terminal; ``--debug`` has its own log.
"""

import logging
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from isthmus.app.logs import Redaction, secrets_of
from isthmus.terminal.announcements import Announcements, Notice
from isthmus.text.visible import visible_line


class _NoticeHandler(logging.Handler):
    """Announces each warning as one line, without secrets."""

    def __init__(self, announcements: Announcements, redact: Callable[[str], str]) -> None:
        super().__init__(logging.WARNING)
        self._announcements = announcements
        self._redact = redact

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]!r} (--debug shows where)"
        self._announcements.say(Notice(visible_line(self._redact(text))))


@contextmanager
def warnings_announced(announcements: Announcements, environment: Mapping[str, str]) -> Generator[None]:
    """Announce warnings and errors that are logged meanwhile; at the end those not shown yet go to stderr."""
    root = logging.getLogger()
    if root.handlers or not (sys.stdin.isatty() and sys.stderr.isatty()):
        yield
        return
    handler = _NoticeHandler(announcements, Redaction(secrets_of(environment)))
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        for announcement in announcements.take():
            if isinstance(announcement, Notice):
                sys.stderr.write(f"isthmus: {announcement.text}\n")
