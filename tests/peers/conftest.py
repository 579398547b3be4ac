"""What the tests with real programs share."""

from pathlib import Path

import pytest

from support.patience import give_editors_time


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home folder of a person, as the program is given it; it is not the HOME of the test's own process."""
    folder = tmp_path / "person"
    (folder / ".gemini").mkdir(parents=True)
    return folder


@pytest.fixture
def soon_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell MCP servers on stdio of this process soon to end: those that hang on purpose do not do it by themselves."""
    monkeypatch.setattr("isthmus.mcp_host.transports.stdio.CLOSE_SECONDS", (0.1, 0.5))


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors in this process have time to answer."""
    give_editors_time(monkeypatch)
