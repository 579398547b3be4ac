"""The program's log: lines of text or of JSON on stderr, or notices above the line that the user is typing.

Tokens are never logged on purpose. Searching each complete line for secrets is defence in depth, for messages of
other programs' errors. Text from clients cannot start a new line or move the cursor.
"""

import json
import logging
import re
import sys
import textwrap
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO, cast

from typing_extensions import override

from isthmus.errors import IsthmusError
from isthmus.models.endpoint.endpoint import SHORTEST_SECRET
from isthmus.terminal.interactive.announcements import Announcements, Notice
from isthmus.text.visible import visible, visible_line

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
HIDDEN = "[hidden]"

_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SECRET_NAME = re.compile(r"(API_KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$", re.IGNORECASE)
_SECRETS = re.compile(
    r"""
    (?P<kept>
        \b(?:bearer|basic|digest)\s+
      | \bisthmus_[0-9a-f]{8}_
      | (?<![\w-])(?=eyJ[\w-]+\.[\w-]+\.)
      | (?:authorization|x-a2a-notification-token|x-goog-api-key|x-api-key|(?:proxy-)?authorization|set-cookie|cookie)
        ["']?\s*[:=,]\s*["']?(?:(?:bearer|basic|digest)\s+)?
      | [?&](?:key|api_key|token|access_token|secret|signature)=
      | ://[^\s/:@]*:(?=[^\s/@]+@)
    )
    (?P<secret>[^\s"',;&@]+)
    """,
    re.IGNORECASE | re.VERBOSE,
)


class Redaction:
    """Redaction of secrets in text: known values, and everything that looks like a secret."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        # Longest first: one value may be the start of another.
        values = sorted({value for value in known if len(value) >= SHORTEST_SECRET}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, values))) if values else None

    def __call__(self, text: str) -> str:
        """Return the text with each secret replaced by ``[hidden]``."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        return _SECRETS.sub(rf"\g<kept>{HIDDEN}", text)


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """Return the values of variables whose names mark them as secret."""
    return [value for name, value in environment.items() if _SECRET_NAME.search(name)]


class TextFormatter(logging.Formatter):
    """Plain text lines: time in UTC, level, text."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__()
        self._redaction = redaction

    @override
    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, followed by the indented lines of its traceback, if any."""
        line = f"{_time(record)} {record.levelname} {visible_line(self._redaction(record.getMessage()))}"
        if record.exc_info:
            trace = visible(self._redaction(self.formatException(record.exc_info)))
            line += "\n" + textwrap.indent(trace, "  ", lambda _: True)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, the record's ``fields``, exception (the traceback)."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__()
        self._redaction = redaction

    @override
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redaction(record.getMessage()),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line.update((str(name), self._safe(value)) for name, value in fields.items() if value is not None)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - anybody's record
        if record.exc_info:
            line["exception"] = self._redaction(self.formatException(record.exc_info))
        # JSON escapes only the first 32 control characters.
        return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(line, ensure_ascii=False, default=str))

    def _safe(self, value: object) -> object:
        return self._redaction(value) if isinstance(value, str) else value


def begin_log(log_format: str, level: str, redaction: Redaction, stream: TextIO | None = None) -> "logging.Handler":
    """Send the program's log to ``stream`` (default: stderr), in one of FORMATS, from a level of LEVELS upwards."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(redaction) if log_format == "json" else TextFormatter(redaction))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.upper())
    for chatty in ("httpx2", "httpcore2", "uvicorn.error", "asyncio", "google_genai", "openai", "anthropic", "urllib3"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    return handler


def begin_debugging(environment: Mapping[str, str], *, beside_prompt: bool) -> None:
    """Send the log to stderr at the level debug, as ``--debug`` says; hide the secrets of the environment.

    ``beside_prompt``: a user types at the same terminal.
    """
    stream: TextIO | None = None
    if beside_prompt and sys.stdin.isatty() and sys.stderr.isatty():
        from prompt_toolkit.patch_stdout import StdoutProxy

        # Writes above the line that the user is typing, not into it.
        stream = cast("TextIO", StdoutProxy())
    begin_log("text", "debug", Redaction(secrets_of(environment)), stream)


class _NoticeHandler(logging.Handler):
    """Announces each warning as one line, without secrets."""

    def __init__(self, announcements: Announcements, redaction: Redaction) -> None:
        super().__init__(logging.WARNING)
        self._announcements = announcements
        self._redaction = redaction

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._announcements.say(Notice(visible_line(self._redaction(_explained(record)))))


class _LineFormatter(logging.Formatter):
    """One line without time and level: for a user who runs one command."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__()
        self._redaction = redaction

    @override
    def format(self, record: logging.LogRecord) -> str:
        return f"isthmus: {visible_line(self._redaction(_explained(record)))}"


def _explained(record: logging.LogRecord) -> str:
    """Return the text of a record and, in place of a traceback, the error."""
    text, error = record.getMessage(), record.exc_info[1] if record.exc_info else None
    if error is None:
        return text
    return f"{text}: {error}" if isinstance(error, IsthmusError) else f"{text}: {error!r} (--debug shows where)"


@contextmanager
def warnings_as_lines(environment: Mapping[str, str]) -> Generator[None]:
    """Write warnings and errors that are logged inside to stderr, a line each; with ``--debug`` the log has them."""
    root = logging.getLogger()
    if root.handlers:
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_LineFormatter(Redaction(secrets_of(environment))))
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


@contextmanager
def warnings_announced(announcements: Announcements, environment: Mapping[str, str]) -> Generator[None]:
    """Show warnings and errors that are logged inside as notices; at the end write the remaining ones to stderr.

    Otherwise they would be written into the line of the prompt. Without a terminal they are lines on stderr; with
    ``--debug`` the log has them.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        with warnings_as_lines(environment):
            yield
        return
    root = logging.getLogger()
    if root.handlers:
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


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
