"""Lock file by which Qwen Code finds a companion; it uses Gemini CLI's protocol with its own discovery files.

The path is ``$QWEN_HOME/ide/PORT.lock``, by default ``~/.qwen/ide/PORT.lock``. :mod:`isthmus.ide.gemini.cli_choice`
predicts which lock Qwen Code chooses. Older companions wrote files directly into the temporary folder; like Qwen Code,
we still read them, but do not write them.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from isthmus.files.locations import make_private_directory, write_private
from isthmus.ide.discovery_file import (
    RejectedFile,
    UnusableFileError,
    folders_of,
    named_files,
    number,
    read_object,
)
from isthmus.ide.gemini.discovery import node_temporary_directory
from isthmus.ide.gemini.finding import companion_of
from isthmus.ide.ide_protocol import FoundIde

if TYPE_CHECKING:
    from isthmus.ide.editor import EditorIdentity

_LOCK = re.compile(r"\d{1,5}\.lock")
_LEGACY = re.compile(r"qwen-code-ide-server-(\d{1,10})\.json")


def qwen_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return Qwen Code's folder by its own rule: QWEN_HOME, with ``~`` for the home folder, otherwise ``~/.qwen``."""
    home = Path(environment.get("HOME") or Path.home())
    named = environment.get("QWEN_HOME")
    if not named:
        return home / ".qwen"
    if named == "~" or named.startswith("~/"):
        return home / named[2:]
    return Path(os.path.abspath(named))  # noqa: PTH100 - keeps symlinks, as Node's path.resolve does


class QwenLockFile:
    """Lock file of one companion, which exists between :meth:`write` and :meth:`remove`."""

    def __init__(self, identity: "EditorIdentity", port: int, environment: Mapping[str, str] = os.environ) -> None:
        self._identity = identity
        self._port = port
        self.path = qwen_directory(environment) / "ide" / f"{port}.lock"

    def write(self, folders: Sequence[str], token: str) -> None:
        """Write or replace the file atomically, with mode 0600.

        Raises:
            OSError: the folder cannot be created or written to.
        """
        make_private_directory(self.path.parent)
        content = {
            "port": self._port,
            "workspacePath": _joined(folders),
            # Qwen Code removes a lock whose ppid is dead, and one without ppid whose workspacePath is not one folder.
            # The id is the companion's, not the editor's: without the companion the lock is useless.
            "ppid": os.getpid(),
            "authToken": token,
            "ideName": self._identity.display_name,
            "ideInfo": {"name": self._identity.name, "displayName": self._identity.display_name},
        }
        write_private(self.path, content)

    def remove(self) -> None:
        """Remove the file, if it exists."""
        with suppress(OSError):
            self.path.unlink()


def _joined(folders: Sequence[str]) -> str:
    """Return the folders joined for Qwen Code; with a colon in a name, as a JSON list, which newer versions read."""
    return json.dumps(list(folders)) if any(os.pathsep in folder for folder in folders) else os.pathsep.join(folders)


def lock_files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the locks, and the files of older companions."""
    for folder, pattern in (
        (qwen_directory(environment) / "ide", _LOCK),
        (node_temporary_directory(environment), _LEGACY),
    ):
        yield from named_files(folder, pattern)


def legacy_number(path: Path) -> int | None:
    """Return the number in the name of an older companion's file, a process id or a port; None for a lock."""
    matched = _LEGACY.fullmatch(path.name)
    return int(matched[1]) if matched else None


def read_lock(path: Path) -> FoundIde | RejectedFile:
    """Return the companion in a lock or older file, or the rejected file with the reason. Blocking."""
    try:
        value = read_object(path)
    except UnusableFileError as error:
        return RejectedFile(str(path), str(error))
    companion = companion_of(path, value, number(value.get("ppid")))
    folders = value.get("workspacePath")
    if isinstance(companion, FoundIde) and isinstance(folders, str) and folders.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            listed: object = json.loads(folders)
            if isinstance(listed, list):
                return replace(companion, folders=folders_of(cast("list[object]", listed)))
    return companion
