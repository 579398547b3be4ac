"""Fixtures that the tests with real programs share."""

import functools
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from isthmus.cli import main
from support.front_terminal import FrontTerminal, front_terminal
from support.gemini_wire import GeminiWire
from support.headless_gemini import RunHere
from support.isthmus_program import InProcess
from support.loaded_program import LoadedProgram, shared_program
from support.scripted_wire import Script

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from playwright.async_api import Browser as AsyncBrowser
    from playwright.sync_api import Browser


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the home folder of a user, as given to the program; it is not the HOME of the test's own process."""
    folder = tmp_path / "user"
    (folder / ".gemini").mkdir(parents=True)
    return folder


@pytest.fixture
def isthmus_here(workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> InProcess:
    """Return a function that runs a command in this process, in the workspace and without input.

    A program of its own would import the MCP SDK again, which takes longer than most of the tested work.
    """

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(workspace)
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        status = main.run(arguments)
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def run_here(isthmus_here: InProcess, monkeypatch: pytest.MonkeyPatch) -> RunHere:
    """Return a function that runs a command in this process with a scripted model of Gemini's."""

    def run(*arguments: str, replies: Sequence[Script]) -> tuple[int, str, str, list[Any]]:
        with GeminiWire(replies) as wire:
            monkeypatch.setenv("GEMINI_API_KEY", "key")
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", wire.base_url)
            return *isthmus_here(*arguments), [request.json for request in wire.model_requests]

    return run


@pytest.fixture(scope="session")
def loaded_isthmus() -> LoadedProgram:
    """Return the process whose copies are the programs of all tests."""
    return shared_program()


@pytest.fixture
def front(loaded_isthmus: LoadedProgram) -> FrontTerminal:
    """Return a function that starts the front on a scripted agent."""
    return functools.partial(front_terminal, loaded=loaded_isthmus)


@pytest.fixture(scope="module")
def browser() -> "Generator[Browser]":
    """Return a real Chromium, one for all tests of a file."""
    from support.workbench import chromium  # here, because most files need no browser

    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
async def browser_beside(anyio_backend: str) -> "AsyncGenerator[AsyncBrowser]":
    """Return a real Chromium for tests that have an event loop, one for all tests of a file."""
    from support.workbench import chromium_beside

    async with chromium_beside() as found:
        yield found
