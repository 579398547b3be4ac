import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from isthmus.terminal.headless.headless import prompt_with_stdin

TESTS = Path(__file__).resolve().parents[3]


def program(arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "support.front_program", *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        **options,
    )


@pytest.mark.slow
def test_rich_and_prompt_toolkit_are_not_imported() -> None:
    result = program(["edit", "-p", "do it", "-o", "json", "--modules"], stdin=subprocess.DEVNULL)
    assert result.returncode == 57, result.stderr  # its edit is refused
    packages = json.loads(result.stderr.splitlines()[-1])["packages"]
    assert "isthmus" in packages
    assert not {"rich", "prompt_toolkit", "pygments", "markdown_it"} & set(packages)


@pytest.mark.slow
def test_what_is_piped_in_comes_before_the_prompt(tmp_path: Path) -> None:
    record = tmp_path / "record"
    result = program(["endless", "-p", "explain", "--record", str(record)], input="some log\n")
    assert result.stdout == "You said: some log\n\nexplain\n"
    assert program(["endless", "-p", ""], input="only this\n").stdout == "You said: only this\n"


def test_a_pipe_that_nobody_writes_to_does_not_hold_up_the_prompt() -> None:
    reading, writing = os.pipe()
    err = io.StringIO()
    try:
        with os.fdopen(reading, encoding="utf-8") as stdin:
            assert prompt_with_stdin("go", stdin, err, seconds=0.05) == "go"
    finally:
        os.close(writing)
    assert "no data came from the pipe" in err.getvalue()


def test_only_so_much_is_taken_from_stdin(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_text("0123456789abcdef", "utf-8")
    err = io.StringIO()
    with path.open(encoding="utf-8") as stdin:
        assert prompt_with_stdin("go", stdin, err, limit=10) == "0123456789\n\ngo"
    assert "only the first 10 bytes" in err.getvalue()


@pytest.mark.parametrize("stdin", [None, io.StringIO("")])
def test_without_a_pipe_the_prompt_is_the_prompt(stdin: io.StringIO | None) -> None:
    assert prompt_with_stdin("go", stdin) == "go"


@pytest.mark.slow
def test_head_may_close_the_pipe() -> None:
    command = f"'{sys.executable}' -m support.front_program endless -p hi -o stream-json </dev/null | head -c 1"
    result = subprocess.run(
        ["bash", "-c", f'{command}; echo "${{PIPESTATUS[0]}}" >&2'],
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    assert result.stdout == "{"
    assert result.stderr.strip() in ("0", "130")
