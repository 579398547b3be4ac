"""What the tests with real programs share."""

import io
from pathlib import Path

import pytest

from isthmus.cli import main
from support.isthmus_program import InProcess


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home folder of a user, as the program is given it; it is not the HOME of the test's own process."""
    folder = tmp_path / "user"
    (folder / ".gemini").mkdir(parents=True)
    return folder


@pytest.fixture
def isthmus_here(workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> InProcess:
    """Run a command in the workspace, without input, where it makes no difference that it is no program of its own.

    A program would import the SDK of MCP anew, which takes longer than most of what such a test shows.
    """

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(workspace)
        monkeypatch.setattr("sys.stdin", io.StringIO())
        status = main.run(arguments)
        out, err = capsys.readouterr()
        return status, out, err

    return run
