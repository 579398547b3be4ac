"""The hook's program: it prints an answer of the companion on its port, and nothing at all in every other case."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from isthmus.ide import permission_hook
from support.waiting import eventually

PORT = 4711
OUTPUT = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}
ANSWER = json.dumps({"ok": True, "result": {"output": OUTPUT}}).encode() + b"\n"


def _announce(folder: Path, name: str, path: Path, *, port: int = PORT) -> Path:
    file = folder / f"companion-{name}.json"
    file.write_text(json.dumps({"ports": [1, port], "socket": str(path), "token": "the-token"}), encoding="utf-8")
    return file


@contextmanager
def _companion(folder: Path, answer: bytes | None) -> Generator[list[Any]]:
    """Listen as a companion that answers with these bytes; with None it closes the connection without any."""
    asked: list[Any] = []
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, connection.makefile("rb") as lines:
                asked.append(json.loads(lines.readline()))
                if answer is not None:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        _announce(folder, "1", path)
        yield asked
        path.unlink()


def _run(folder: Path, message: str = '{"tool_name": "Bash"}', *arguments: str) -> "subprocess.CompletedProcess[str]":
    given = arguments or (str(folder), str(PORT), "claude")
    command = [sys.executable, "-I", "-S", permission_hook.__file__, *given]
    return subprocess.run(
        command, input=message, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder whose path is short enough for a socket."""
    short = Path(os.environ["TMPDIR"]) / "h"
    short.mkdir()
    return short


def test_an_answer_of_the_companion_is_printed(folder: Path) -> None:
    _announce(folder, "0", folder / "gone")  # of a companion that was killed
    _announce(folder, "2", folder / "other", port=5)
    (folder / "companion-3.json").write_text("{broken", encoding="utf-8")
    (folder / "companion-4.json").write_text("[]", encoding="utf-8")
    with _companion(folder, ANSWER) as asked:
        done = _run(folder)
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, OUTPUT, "")
    message = {"tool_name": "Bash"}
    assert asked == [{"command": "permission", "protocol": "claude", "message": message, "token": "the-token"}]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"",
        ANSWER[:-1],
        ANSWER[:40],
        b"not json\n",
        b"[]\n",
        b'{"ok": true, "result": {"output": null}}\n',
        b'{"ok": true, "result": {"output": "allow"}}\n',
        b'{"ok": true}\n',
        b'{"ok": "true", "result": {"output": {"a": 1}}}\n',
        b'{"ok": false, "error": "too many questions", "result": {"output": {"a": 1}}}\n',
        b"[" * 100_000 + b"\n",
    ],
)  # fmt: skip
def test_anything_else_prints_nothing(folder: Path, answer: bytes | None) -> None:
    with _companion(folder, answer):
        done = _run(folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_turn_is_told_and_nothing_is_printed_into_the_prompt(folder: Path) -> None:
    with _companion(folder, None) as asked:
        done = _run(folder, '{"prompt": "go on"}', str(folder), str(PORT), "claude", "turn")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        eventually(lambda: asked, what="the companion is told")
    message = {"prompt": "go on"}
    assert asked == [{"command": "turn", "protocol": "claude", "message": message, "token": "the-token"}]


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("{broken", ()),
        ("", ()),
        ("{}", ("one",)),
        ("{}", ("/no/such/folder", "1", "claude")),
        ("{}", ("/", "x", "claude")),
        ("{}", ("/", "1", "claude", "accept")),
    ],
)
def test_without_a_message_or_a_companion_it_prints_nothing(
    folder: Path, message: str, arguments: tuple[str, ...]
) -> None:
    done = _run(folder, message, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser may act as another user")
def test_an_answer_of_another_user_is_not_printed(folder: Path) -> None:
    # A killed companion leaves its control file, and another user may take the place of its socket in /tmp.
    path = folder / "s"
    stranger = f"""
import os, socket
listening = socket.socket(socket.AF_UNIX)
listening.bind({str(path)!r})
os.setresuid(65534, 65534, 65534)
listening.listen()
print("ready", flush=True)
connection, _ = listening.accept()
connection.makefile("rb").readline()
connection.sendall({ANSWER!r})
"""
    _announce(folder, "1", path)
    with subprocess.Popen([sys.executable, "-I", "-c", stranger], stdout=subprocess.PIPE) as listening:
        assert listening.stdout is not None
        assert listening.stdout.readline() == b"ready\n"
        done = _run(folder)
        listening.kill()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_ends_when_nobody_reads_its_output(folder: Path) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        _announce(folder, "1", path)
        command = [sys.executable, "-I", "-S", permission_hook.__file__, str(folder), str(PORT), "claude"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as hook:
            assert hook.stdin is not None
            assert hook.stdout is not None
            hook.stdin.write(b"{}")
            hook.stdin.close()
            connection, _ = listening.accept()
            with connection, connection.makefile("rb") as lines:
                lines.readline()
                hook.stdout.close()  # as when the CLI is killed
                assert hook.wait(30) == 0
                assert lines.read() == b""


def test_it_loads_nothing_but_small_parts_of_the_standard_library() -> None:
    command = [sys.executable, "-I", "-S", "-X", "importtime", permission_hook.__file__]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True, timeout=60)
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert {"json", "socket"} <= loaded
    assert not loaded & {"isthmus", "asyncio", "pathlib", "subprocess", "tempfile", "typing", "logging", "dataclasses"}
