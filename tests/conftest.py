"""What holds for every test: no trace of the developer's machine goes in, none of the test's is left behind.

Each test has its own HOME, XDG folders and TMPDIR, and an environment without keys, proxies, editors and agents.
The working directory stays as it is. Helpers and fakes are in tests/support/, not here.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from support import programs
from support.surroundings import FOREIGN_NAMES, FOREIGN_PREFIXES, Surroundings


def pytest_report_header() -> str:
    """Say whether a missing program fails the run. (support.programs reads CI here, before the first test hides it.)"""
    return f"missing programs: {'failure (CI=true)' if programs.IN_CI else 'skip'}"


# How long an example takes says nothing on a loaded machine; pytest-timeout ends what hangs.
hypothesis.settings.register_profile("isthmus", deadline=None)
hypothesis.settings.load_profile("isthmus")


# A shell starts what it puts in the background with SIGINT ignored, and programs pass that on to those they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, which is what the program runs on."""
    return "asyncio"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surroundings]:
    """Isolate the test from the machine; the folders are gone after it."""
    # pytest's own folder is made at its first use: that must not happen inside the TMPDIR of one test.
    tmp_path_factory.getbasetemp()
    root = Path(tempfile.mkdtemp(prefix="is-", dir=_short_temporary_folder())).resolve()
    places = Surroundings(home=root / "home", temporary=root / "tmp", runtime=root / "run")
    for folder in (places.home, places.temporary, places.runtime):
        folder.mkdir(mode=0o700)
    for name in tuple(os.environ):
        if name.startswith(FOREIGN_PREFIXES) or name.upper() in FOREIGN_NAMES:
            monkeypatch.delenv(name)
    isolated = {
        "HOME": places.home,
        "USERPROFILE": places.home,
        "TMPDIR": places.temporary,
        "TEMP": places.temporary,
        "TMP": places.temporary,
        "XDG_CACHE_HOME": places.home / ".cache",
        "XDG_CONFIG_HOME": places.home / ".config",
        "XDG_DATA_HOME": places.home / ".local" / "share",
        "XDG_STATE_HOME": places.home / ".local" / "state",
        "XDG_RUNTIME_DIR": places.runtime,
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
    }
    for name, value in isolated.items():
        monkeypatch.setenv(name, str(value))
    # The module remembers the folder that it found first.
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield places
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder with a resolved absolute path, in no git repository."""
    folder = tmp_path.resolve() / "workspace"
    folder.mkdir()
    return folder


def _short_temporary_folder() -> str | None:
    """A folder with a short path for temporary files; None leaves the choice to the system."""
    return "/tmp" if os.access("/tmp", os.W_OK | os.X_OK) else None
