"""Discovery file of the Gemini CLI companion protocol (section I.2), and the variables that real clients read.

Only writes and removes files; :mod:`finding` reads them as a client.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.files.locations import absolute, make_private_directory, write_private

if TYPE_CHECKING:
    from isthmus.ide.editor import EditorIdentity

GEMINI_CLI = "Gemini CLI"
QWEN_CODE = "Qwen Code"
CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


def node_temporary_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return Node's ``os.tmpdir()`` on POSIX: TMPDIR, TMP, TEMP, or otherwise /tmp, without a trailing slash.

    The path is absolute, because programs in other folders receive paths below it.
    """
    named = next((environment[name] for name in ("TMPDIR", "TMP", "TEMP") if environment.get(name)), "/tmp")  # noqa: S108
    return Path(absolute(named))


class DiscoveryFile:
    """Discovery file of one companion, which exists between :meth:`write` and :meth:`remove`."""

    def __init__(self, identity: "EditorIdentity", port: int, environment: Mapping[str, str] = os.environ) -> None:
        self._identity = identity
        self._port = port
        folder = node_temporary_directory(environment) / "gemini" / "ide"
        self.path = folder / f"gemini-ide-server-{identity.pid}-{port}.json"

    def write(self, folders: Sequence[str], token: str) -> None:
        """Write or replace the file atomically, with mode 0600.

        Raises:
            OSError: the folder cannot be created or written to.
        """
        make_private_directory(self.path.parent)
        content = {
            "port": self._port,
            "workspacePath": os.pathsep.join(folders),
            "authToken": token,
            "ideInfo": {"name": self._identity.name, "displayName": self._identity.display_name},
        }
        write_private(self.path, content)

    def remove(self) -> None:
        """Remove the file, if it exists."""
        with suppress(OSError):
            self.path.unlink()


def is_in_container() -> bool:
    """Return whether this process runs in a container, by the same marks as Gemini CLI and Qwen Code."""
    return any(Path(mark).exists() for mark in CONTAINER_MARKS)


def agent_variables(
    port: int, token: str, folders: Sequence[str], pid: int, *, in_container: bool = False
) -> dict[str, str]:
    """Return all variables that the real clients of this server read; ``pid`` is the editor's.

    In a container, Gemini CLI looks for its companion on the host, unless REMOTE_CONTAINERS indicates that the editor
    is in the container too. It is set here, because the editor of a terminal with these variables is.
    """
    workspace = os.pathsep.join(folders)
    return {
        **({"REMOTE_CONTAINERS": "true"} if in_container else {}),
        "GEMINI_CLI_IDE_SERVER_PORT": str(port),
        "GEMINI_CLI_IDE_WORKSPACE_PATH": workspace,
        "GEMINI_CLI_IDE_AUTH_TOKEN": token,
        "GEMINI_CLI_IDE_PID": str(pid),
        "QWEN_CODE_IDE_SERVER_PORT": str(port),
        "QWEN_CODE_IDE_WORKSPACE_PATH": workspace,
    }
