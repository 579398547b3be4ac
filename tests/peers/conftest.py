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


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors in this process have time to answer."""
    give_editors_time(monkeypatch)
