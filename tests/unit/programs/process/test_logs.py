import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest

from isthmus.programs.process.logs import Redaction, begin_log, secrets_of

Begin = Callable[..., io.StringIO]


@pytest.fixture
def begin() -> Iterator[Begin]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    chatty = {name: item.level for name, item in root.manager.loggerDict.items() if isinstance(item, logging.Logger)}

    def start(log_format: str, level: str = "info", *known: str) -> io.StringIO:
        stream = io.StringIO()
        begin_log(log_format, level, Redaction(known), stream)
        return stream

    yield start
    root.handlers[:] = before
    root.setLevel(level)
    for name in ("httpx2", "httpcore2", "uvicorn.error", "asyncio", "google_genai", "openai", "anthropic"):
        logging.getLogger(name).setLevel(chatty.get(name, logging.NOTSET))


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer s3cr3t-value",
        "{'authorization': 'Basic s3cr3t-value'}",
        '"X-A2A-Notification-Token": "s3cr3t-value"',
        "x-goog-api-key: s3cr3t-value",
        "GET https://host/path?key=s3cr3t-value&x=1",
        "https://host/?x=1&access_token=s3cr3t-value",
        "https://user:s3cr3t-value@host/",
        "token isthmus_0123abcd_s3cr3t-value of alice",
        "the text eyJhbGciOiJub25lIn0.eyJzdWIiOiJzM2NyM3QtdmFsdWUifQ.s3cr3t-value is a JWT",
        "b'bearer s3cr3t-value'",
        "known-value-s3cr3t-value",
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    hidden = Redaction(["known-value-s3cr3t-value", "short"])(text)
    assert "s3cr3t-value" not in hidden
    assert "[hidden]" in hidden


@pytest.mark.parametrize(
    "text",
    [
        "task 5f2 completed",
        "https://host/path?x=1",
        "12 tokens used",
        "short",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redaction(["known-value-s3cr3t-value", "short"])(text) == text


def test_secrets_are_known_by_the_names_of_their_variables() -> None:
    environment = {"GEMINI_API_KEY": "a", "ISTHMUS_A2A_TOKEN": "b", "db_password": "c", "HOME": "d", "TOKENS": "e"}
    assert secrets_of(environment) == ["a", "b", "c"]


def test_text_lines_have_time_level_and_message(begin: Begin) -> None:
    stream = begin("text")
    logging.getLogger("isthmus.x").info("ready at %s", "http://x/?token=abcdefgh")
    line = stream.getvalue()
    assert line.endswith(" INFO ready at http://x/?token=[hidden]\n")
    assert line[10] == "T"
    assert line[23] == "Z"


def test_json_lines_are_objects_also_with_a_traceback(begin: Begin) -> None:
    stream = begin("json", "info", "the-very-token")
    log = logging.getLogger("isthmus.x")
    try:
        raise ValueError("it was the-very-token")
    except ValueError:
        log.exception("failed\nbadly")
    log.info("asked", extra={"fields": {"user": "alice", "error": None, "duration": 0.5}})
    log.debug("not said")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["level"] == "error"
    assert first["message"] == "failed\nbadly"
    assert "ValueError: it was [hidden]" in first["exception"]
    assert second == {
        "time": second["time"],
        "level": "info",
        "logger": "isthmus.x",
        "message": "asked",
        "user": "alice",
        "duration": 0.5,
    }


def test_a_traceback_in_text_hides_secrets_too(begin: Begin) -> None:
    stream = begin("text", "warning", "the-very-token")
    try:
        raise ValueError("it was the-very-token")
    except ValueError:
        logging.getLogger("isthmus.x").exception("failed")
    logging.getLogger("httpx2").info("POST https://hooks.example/secret-path")
    assert "it was [hidden]" in stream.getvalue()
    assert "hooks.example" not in stream.getvalue()


def test_what_strangers_wrote_makes_no_line_of_text_and_moves_no_cursor(begin: Begin) -> None:
    stream = begin("text")
    log = logging.getLogger("isthmus.x")
    log.info("task=%s", "a\n2026-01-01T00:00:00.000Z INFO alice was here\x1b[2J\x9b1A\u202e\r")
    try:
        raise ValueError("b\n2026-01-01T00:00:00.000Z INFO bob was here\x1b]0;title\x07")
    except ValueError:
        log.exception("failed")
    first, second, *trace = stream.getvalue().splitlines()
    assert " INFO task=a\u240a2026-01-01" in first
    assert " ERROR failed" in second
    assert all(line.startswith("  ") for line in trace)
    assert not any(character in stream.getvalue() for character in "\x1b\x9b\u202e\r\x07")


def test_a_json_object_escapes_what_strangers_wrote_and_hides_secrets_in_its_fields(begin: Begin) -> None:
    stream = begin("json", "info", "the-very-token")
    text = "a\n\x1b[2J\x9b1A\u202e\u2028"
    logging.getLogger("isthmus.x").info(text, extra={"fields": {"task": "the-very-token"}})
    (line,) = stream.getvalue().splitlines()
    assert line.isascii()
    assert json.loads(line)["message"] == text
    assert json.loads(line)["task"] == "[hidden]"
