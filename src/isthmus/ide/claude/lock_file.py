"""The lock file by which Claude CLIs find the companion (spec 3, How Discovery Works 2), and its variables.

Writing and removing only; reading them as a client does is in :mod:`finding`. A CLI that starts removes the lock files
whose process it does not see, whatever listens there: so the process id is one that lives and can be seen from here,
and the file is written again when it is gone.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from isthmus.files.locations import make_private_directory, write_private
from isthmus.ide.claude.finding import PORT_VARIABLE, lock_folders
from isthmus.ide.editor import EditorIdentity
from isthmus.ide.processes import process_is_alive


class LockFile:
    """One companion's file; it exists between :meth:`write` and :meth:`remove`."""

    def __init__(self, identity: EditorIdentity, port: int, environment: Mapping[str, str] = os.environ) -> None:
        self._identity = identity
        self.path = lock_folders(environment)[0] / f"{port}.lock"

    def write(self, folders: Sequence[str], token: str) -> None:
        """Write it, or replace it when the workspace changed. 0600 and whole at every moment, its folder 0700.

        Raises:
            OSError: the folder cannot be made or written to.
        """
        make_private_directory(self.path.parent)
        with suppress(OSError):  # somebody else's, which the write tells
            self.path.parent.chmod(0o700)
        # An editor in a container or on another machine has an id that says nothing here.
        is_visible = process_is_alive(self._identity.pid)
        content = {
            "pid": self._identity.pid if is_visible else os.getpid(),
            "workspaceFolders": list(folders),
            "ideName": self._identity.display_name,
            "transport": "ws",
            "authToken": token,
            "runningInWindows": False,
        }
        write_private(self.path, content)

    def remove(self) -> None:
        """Remove it; a file that is gone already is no error."""
        with suppress(OSError):
            self.path.unlink()


def claude_variables(port: int) -> dict[str, str]:
    """What makes a CLI in a terminal connect to ``port``, and write for a terminal inside an editor."""
    return {PORT_VARIABLE: str(port), "ENABLE_IDE_INTEGRATION": "true", "FORCE_CODE_TERMINAL": "true"}
