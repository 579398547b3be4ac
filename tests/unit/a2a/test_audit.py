"""The audit log: what a line has and has not, and the file that it is in."""

import json
import os
import resource
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.server.logs.access_log import AnswerNote, RequestNote
from isthmus.a2a.server.logs.audit import ANONYMOUS_LINES, REFUSED_LINES, request_line
from isthmus.a2a.server.logs.audit_file import AuditError, AuditFile

HOSTILE = 'x\n{"event": "request", "user": "admin"}\r\u2028\x85\x1b[2J"\\\ud800'


def note(**fields: Any) -> RequestNote:
    usual: dict[str, Any] = {"method": "message/send", "user": "alice", "auth": "token", "status": 200}
    return RequestNote(**{**usual, **fields})


def lines(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    assert data == b"" or data.endswith(b"\n")
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_line_says_who_did_what_and_how_it_ended() -> None:
    line = request_line(
        note(
            token_id="12345678",
            task_id="task-1",
            remote="192.0.2.1",
            answers=(AnswerNote("call-1", "write_file", "proceed_once"),),
        ),
        0,
    )
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:00.000Z",
        "event": "request",
        "user": "alice",
        "auth": "token",
        "token_id": "12345678",
        "remote": "192.0.2.1",
        "method": "message/send",
        "task": "task-1",
        "outcome": "ok",
        "status": 200,
        "answers": [{"call": "call-1", "tool": "write_file", "option": "proceed_once"}],
    }


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"status": 401, "auth": ""}, "refused"),
        ({"status": 403}, "refused"),
        ({"status": 429}, "refused"),
        ({"error": -32000}, "refused"),
        ({"error": -32001}, "failed"),
        ({"status": 413}, "failed"),
        ({"status": 503}, "failed"),
        ({"status": 0}, "failed"),
        ({"status": 499}, "left"),
        ({"status": 307}, "ok"),
    ],
)
def test_the_outcome_tells_refused_users_from_failed_requests(fields: dict[str, Any], outcome: str) -> None:
    assert json.loads(request_line(note(**fields), 0))["outcome"] == outcome


@pytest.mark.parametrize("field", ["user", "method", "task_id", "remote", "reason", "token_id"])
def test_a_hostile_text_stays_in_its_field_of_its_line(field: str) -> None:
    line = request_line(note(**{field: HOSTILE}), 0)
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    assert HOSTILE in json.loads(line).values()
    answers = (AnswerNote(HOSTILE, HOSTILE, HOSTILE),) * 100
    line = request_line(note(answers=answers), 0)
    assert line.count(b"\n") == 1
    assert len(json.loads(line)["answers"]) == 50


def test_long_texts_are_cut() -> None:
    long = "x" * 1_000_000
    answers = (AnswerNote(long, long, long),) * 1000
    line = request_line(note(user=long, method=long, task_id=long, remote=long, reason=long, answers=answers), 0)
    assert len(line) < 50_000


def test_what_is_public_is_not_in_the_log(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit")
    file.record(note(method="GET '/healthz'", user="", auth=""))
    file.record(note(method="GET '/ui/api/session'"))
    file.record(note(method="POST '/ui/api/pair'", user="", auth=""))
    file.record(note(method="GET '/tasks'", user="", auth="", status=401))
    file.close()
    assert [(line["method"], line["outcome"]) for line in lines(tmp_path / "audit")] == [
        ("GET '/ui/api/session'", "ok"),
        ("POST '/ui/api/pair'", "ok"),
        ("GET '/tasks'", "refused"),
    ]


def test_the_file_is_its_owners_alone_and_is_appended_to(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "audit"
    before = os.umask(0)
    try:
        first, second = AuditFile(path), AuditFile(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first.record(note(user="a"))
    second.record(note(user="b"))
    first.record(note(user="c"))
    first.close()
    second.close()
    path.chmod(0o644)
    third = AuditFile(path)
    assert "mode 0644" in caplog.text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    third.record(note(user="d"))
    third.close()
    assert [line["user"] for line in lines(path)] == ["a", "b", "c", "d"]


def test_a_file_that_cannot_be_used_is_named_at_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "missing" / "audit", tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(AuditError, match=str(path)):
            AuditFile(path)


def test_a_renamed_file_is_made_anew(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "audit"
    file = AuditFile(path, clock=clock)
    file.record(note(user="a"))
    path.rename(tmp_path / "old")
    clock.now += 2
    file.record(note(user="b"))
    file.record(note(user="c"))
    file.close()
    assert [line["user"] for line in lines(tmp_path / "old")] == ["a"]
    assert [line["user"] for line in lines(path)] == ["b", "c"]


@contextmanager
def full_disk_at(size: int) -> Generator[None]:
    """Let the kernel refuse to write files of this process beyond a size in bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_stops_nothing_and_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "audit"
    file = AuditFile(path)
    file.record(note(user="a"))
    with full_disk_at(path.stat().st_size + 10):
        for _ in range(5):
            file.record(note(user="lost"))
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "requests are answered" in caplog.text
    file.record(note(user="b"))
    file.close()
    torn, *_ = [line for line in path.read_bytes().split(b"\n") if line and not line.endswith(b"}")]
    assert len(torn) == 10
    whole = [json.loads(line) for line in path.read_bytes().split(b"\n") if line.endswith(b"}")]
    assert [(line["event"], line.get("user"), line.get("count")) for line in whole] == [
        ("request", "a", None),
        ("request", "b", None),
        ("lost", None, 5),
    ]


def test_floods_of_refusals_are_counted_and_not_written(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "audit"
    file = AuditFile(path, clock=clock)
    for _ in range(ANONYMOUS_LINES + 1000):
        file.record(note(user="", auth="", status=401))
    for _ in range(REFUSED_LINES + 1):
        file.record(note(status=429))
    file.record(note(user="bob"))
    assert len(lines(path)) == ANONYMOUS_LINES + REFUSED_LINES + 1
    clock.now += 61
    file.record(note(user="", auth="", status=401))
    *_, suppressed, last = lines(path)
    assert (suppressed["event"], suppressed["count"]) == ("suppressed", 1001)
    assert last["outcome"] == "refused"
    for _ in range(ANONYMOUS_LINES):
        file.record(note(user="", auth="", status=401))
    file.close()
    assert lines(path)[-1]["count"] == 1
