"""The lock file by which Qwen Code finds a companion: it speaks the protocol of spec 1 and looks elsewhere for it.

``$QWEN_HOME/ide/PORT.lock``, else ``~/.qwen/ide/PORT.lock``. Writing and removing only; which lock a Qwen Code takes is
in :mod:`isthmus.ide.doctor`. The legacy files directly in the temporary folder are read by it still, not written here.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from isthmus.ide.editor import EditorIdentity
from isthmus.places import make_private_directory, write_private


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
