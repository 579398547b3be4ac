"""The discovery file of the Gemini CLI companion protocol (section I.2), and the variables that real clients read.

Writes and removes only; :mod:`finding` reads discovery files as a client does.
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
    """Return Node's ``os.tmpdir()`` on POSIX: TMPDIR, TMP, TEMP, or else /tmp, without a trailing slash.

    The path is absolute, because programs in other folders get paths below it.
    """
    named = next((environment[name] for name in ("TMPDIR", "TMP", "TEMP") if environment.get(name)), "/tmp")  # noqa: S108
    return Path(absolute(named))


class DiscoveryFile:
    """One companion's discovery file; it exists between :meth:`write` and :meth:`remove`."""

    def __init__(self, identity: "EditorIdentity", port: int, environment: Mapping[str, str] = os.environ) -> None:
        self._identity = identity
        self._port = port
        folder = node_temporary_directory(environment) / "gemini" / "ide"
        self.path = folder / f"gemini-ide-server-{identity.pid}-{port}.json"

    def write(self, folders: Sequence[str], token: str) -> None:
        """Write the file, or replace it when the workspace changed; 0600 and never incomplete.

        Raises:
            OSError: the folder cannot be made or written to.
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
        """Remove the file; one that is gone already is ignored."""
        with suppress(OSError):
            self.path.unlink()


def is_in_container() -> bool:
    """Return whether this process runs in a container, by the marks that Gemini CLI and Qwen Code look for."""
    return any(Path(mark).exists() for mark in CONTAINER_MARKS)


def agent_variables(
    port: int, token: str, folders: Sequence[str], pid: int, *, in_container: bool = False
) -> dict[str, str]:
    """Return all variables that the real clients of this server read; ``pid`` is the editor's.

    A Gemini CLI in a container looks for its companion on the container's host, unless REMOTE_CONTAINERS says that its
    editor is in the container too, as that of a terminal with these variables is.
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
