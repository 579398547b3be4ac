"""The machine as a test sees it: folders of its own, and an environment without the developer's keys and editors.

The autouse fixture of tests/conftest.py applies it to each test; fixtures shared by several tests have their own.
"""

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from isthmus.models.endpoint.providers import PREFIXED, secret_variables

FOREIGN_PREFIXES = (
    *sorted({f"{variable.partition('_')[0]}_" for variable in secret_variables()}),
    "A2A_",
    "CLAUDE",
    "CLICOLOR",
    "GIT_",
    "ISTHMUS_",
    "LANGCHAIN_",
    "LANGSMITH_",
    "MCP_",
    "NVIM",
    "OLLAMA_",
    "OPENROUTER_",
    "OTEL_",
    "QWEN_",
    "VSCODE_",
    "XDG_",
)
"""Variables that change what Isthmus or a real client does; no test inherits them."""

NODE_COMPILED = Path(__file__).parents[2] / ".cache" / "node-compiled"
"""The folder where Node keeps what it compiled of the agent CLIs."""

FOREIGN_NAMES = frozenset(
    {
        *(name for each in PREFIXED for name in (each.base_url_variable, *each.secret_variables)),
        "ALL_PROXY",
        # Real CLIs draw no interface when they see it; support.programs has read it before.
        "CI",
        "COLORTERM",
        "CONTINUOUS_INTEGRATION",
        "COLUMNS",
        "EDITOR",
        "ENABLE_IDE_INTEGRATION",
        "FORCE_CODE_TERMINAL",
        "FORCE_COLOR",
        "FTP_PROXY",
        "GITHUB_ACTIONS",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "LANGUAGE",
        "LC_MESSAGES",
        "LINES",
        "NO_COLOR",
        "NO_PROXY",
        "PAGER",
        "REMOTE_CONTAINERS",
        "SSH_CONNECTION",
        "TERM_PROGRAM",
        "TERM_PROGRAM_VERSION",
        "TMUX",
        "VIMRUNTIME",
        "VISUAL",
        # Without bytecode each of the many programs that tests start would compile the whole package again.
        "PYTHONDONTWRITEBYTECODE",
        # This process saw it at its start; programs that tests start behave as on a user's machine.
        "PYTHONWARNDEFAULTENCODING",
    }
)


@dataclass(frozen=True, slots=True)
class IsolatedFolders:
    """The folders of one test in place of the user's. Their paths are short: a Unix socket's has at most 108 bytes."""

    home: Path
    temporary: Path
    runtime: Path


_untouched: list[IsolatedFolders] = []
"""Folders that a test left as it got them, for the next one: making and removing four takes longer than most tests."""


@contextlib.contextmanager
def isolate(patch: pytest.MonkeyPatch) -> Generator[IsolatedFolders]:
    """Yield empty folders, which the next test gets only if they stay empty. `patch` makes the environment use them."""
    places = _untouched.pop() if _untouched else _make_folders()
    for name in tuple(os.environ):
        if name.startswith(FOREIGN_PREFIXES) or name.upper() in FOREIGN_NAMES:
            patch.delenv(name)
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
        # The agent CLIs are 20 MB of JavaScript, which Node otherwise compiles at each start.
        "NODE_COMPILE_CACHE": NODE_COMPILED,
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
    }
    for name, value in isolated.items():
        patch.setenv(name, str(value))
    # The module caches the folder that it found first.
    patch.setattr(tempfile, "tempdir", None)
    try:
        yield places
    finally:
        if _are_untouched(places):
            _untouched.append(places)
        else:
            shutil.rmtree(places.home.parent, ignore_errors=True)


def _make_folders() -> IsolatedFolders:
    root = Path(tempfile.mkdtemp(prefix="is-", dir=_short_temporary_folder())).resolve()
    places = IsolatedFolders(home=root / "home", temporary=root / "tmp", runtime=root / "run")
    for folder in (places.home, places.temporary, places.runtime):
        folder.mkdir(mode=0o700)
    return places


def _are_untouched(places: IsolatedFolders) -> bool:
    folders = (places.home, places.temporary, places.runtime)
    try:
        return not any(os.listdir(folder) or os.lstat(folder).st_mode & 0o7777 != 0o700 for folder in folders)  # noqa: PTH208 - a third of the time
    except OSError:
        return False


@atexit.register
def _remove_untouched() -> None:
    for places in _untouched:
        shutil.rmtree(places.home.parent, ignore_errors=True)


def _short_temporary_folder() -> str | None:
    """Return a folder with a short path for temporary files; None leaves the choice to the system."""
    return "/tmp" if os.access("/tmp", os.W_OK | os.X_OK) else None
