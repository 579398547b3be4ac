"""The lock file by which Qwen Code finds a companion: it speaks the protocol of spec 1 and looks elsewhere for it.

``$QWEN_HOME/ide/PORT.lock``, else ``~/.qwen/ide/PORT.lock``. Which lock a Qwen Code takes is in
:mod:`isthmus.ide.discovery.cli_choice`. Older companions wrote files directly into the temporary folder, which Qwen
Code still reads; here they are only read, too.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from isthmus.files.locations import make_private_directory, write_private
from isthmus.ide.discovery_file import (
    RejectedFile,
    UnusableFileError,
    folders_of,
    named_files,
    number,
    read_object,
)
from isthmus.ide.editor import EditorIdentity
from isthmus.ide.gemini.discovery import node_temporary_directory
from isthmus.ide.gemini.finding import companion_of
from isthmus.ide.ide_protocol import FoundIde

_LOCK = re.compile(r"\d{1,5}\.lock")
_LEGACY = re.compile(r"qwen-code-ide-server-(\d{1,10})\.json")


def qwen_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Qwen Code's own folder, as it resolves it: QWEN_HOME, where ``~`` is the home folder, else ``~/.qwen``."""
    home = Path(environment.get("HOME") or Path.home())
    named = environment.get("QWEN_HOME")
    if not named:
        return home / ".qwen"
    if named == "~" or named.startswith("~/"):
        return home / named[2:]
    return Path(os.path.abspath(named))  # noqa: PTH100 - symlinks are kept, as Node's path.resolve keeps them


class QwenLockFile:
    """One companion's lock; it exists between :meth:`write` and :meth:`remove`."""

    def __init__(self, identity: EditorIdentity, port: int, environment: Mapping[str, str] = os.environ) -> None:
        self._identity = identity
        self._port = port
        self.path = qwen_directory(environment) / "ide" / f"{port}.lock"

    def write(self, folders: Sequence[str], token: str) -> None:
        """Write it, or replace it when the workspace changed. 0600 and whole at every moment.

        Raises:
            OSError: the folder cannot be made or written to.
        """
        make_private_directory(self.path.parent)
        content = {
            "port": self._port,
            "workspacePath": _joined(folders),
            # Qwen Code removes a lock whose ppid is dead, and one without ppid whose workspacePath is no single folder.
            # The companion's own id, not the editor's: without the companion nobody answers, whatever the editor does.
            "ppid": os.getpid(),
            "authToken": token,
            "ideName": self._identity.display_name,
            "ideInfo": {"name": self._identity.name, "displayName": self._identity.display_name},
        }
        write_private(self.path, content)

    def remove(self) -> None:
        """Remove it; a file that is gone already is no error."""
        with suppress(OSError):
            self.path.unlink()


def _joined(folders: Sequence[str]) -> str:
    """The folders as Qwen Code splits them; newer ones read a JSON list too, the only form for a colon in a name."""
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
    """What a lock, or an older companion's file, says, or why it is of no use to any client. Blocking file access."""
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
