"""Lock file by which Claude CLIs find the companion (Claude IDE protocol, How Discovery Works 2), and variables.

Only writes and removes files; :mod:`finding` reads them as a client. A starting CLI removes lock files whose process it
does not see, even if a server listens on the port. The process id therefore belongs to a process that is visible here,
and a removed file is written again.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from isthmus.files.locations import make_private_directory, write_private
from isthmus.ide.claude.discovery.finding import PORT_VARIABLE, lock_folders
from isthmus.ide.editor import EditorIdentity
from isthmus.ide.processes import process_is_alive


class LockFile:
    """Lock file of one companion, which exists between :meth:`write` and :meth:`remove`."""

    def __init__(self, identity: EditorIdentity, port: int, environment: Mapping[str, str] = os.environ) -> None:
        self._identity = identity
        self.path = lock_folders(environment)[0] / f"{port}.lock"

    def write(self, folders: Sequence[str], token: str) -> None:
        """Write or replace the file atomically, with mode 0600 in a folder of mode 0700.

        Raises:
            OSError: the folder cannot be created or written to.
        """
        make_private_directory(self.path.parent)
        with suppress(OSError):  # another user's folder; the write reports it
            self.path.parent.chmod(0o700)
        # The process id of an editor in a container or on another machine means nothing here.
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
        """Remove the file, if it exists."""
        with suppress(OSError):
            self.path.unlink()


def claude_variables(port: int) -> dict[str, str]:
    """Return the variables that make a CLI in a terminal connect to ``port`` and print as in an editor terminal."""
    return {PORT_VARIABLE: str(port), "ENABLE_IDE_INTEGRATION": "true", "FORCE_CODE_TERMINAL": "true"}
