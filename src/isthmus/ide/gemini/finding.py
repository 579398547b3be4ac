"""Finds the companions of a workspace, best first, as a CLI of the Gemini CLI companion protocol does.

Reads discovery files (with both forms of names), the environment and the process tree. The order is the real CLI's: the
file with the port in the environment, the IDE that we run in, IDEs whose process exists, newer IDEs. Rejected files are
returned with the reason. Makes no connections and removes no files.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from isthmus.encoding.codec import JsonObject
from isthmus.ide.discovery_file import (
    RejectedFile,
    UnusableFileError,
    folders_of,
    mismatch,
    named_files,
    number,
    port_number,
    read_object,
)
from isthmus.ide.gemini.discovery import node_temporary_directory
from isthmus.ide.ide_protocol import FoundIde, FoundIdes, RemoteEndpoint, sort_files
from isthmus.ide.processes import MAXIMUM_LEVELS, process_ancestors, process_is_alive

PORT_VARIABLE = "GEMINI_CLI_IDE_SERVER_PORT"
WORKSPACE_VARIABLE = "GEMINI_CLI_IDE_WORKSPACE_PATH"
_NAME = re.compile(r"gemini-ide-server-(\d{1,10})(?:-(\d{1,5}))?\.json")
_SHELLS = frozenset({"zsh", "bash", "sh", "tcsh", "csh", "ksh", "fish", "dash"})
"""Names that real clients recognise as shells, without login shells, whose names begin with -."""


def editor_process() -> int | None:
    """Return the process that Gemini CLI and Qwen Code, started from here, consider their editor.

    It is two levels above the nearest shell, or one level if there are no more. Without a shell, it is the highest
    ancestor below process 1.
    """
    import psutil  # loaded on demand, not at start

    try:
        above = [psutil.Process(), *psutil.Process().parents()][:MAXIMUM_LEVELS]
        for position, process in enumerate(above):
            command = process.cmdline()[:1]
            if command and Path(command[0].split(" ")[0]).name in _SHELLS:
                editors = [parent.pid for parent in above[position + 1 : position + 3] if parent.pid > 1]
                return editors[-1] if editors else None
        return next((process.pid for process in reversed(above) if process.pid > 1), None)
    except psutil.Error:
        return None


def named_companion(name: str, endpoint: RemoteEndpoint) -> "Callable[[Path, Mapping[str, str]], FoundIdes]":
    """Return a search that finds only the companion at this endpoint; ``name`` is the name to show for it."""
    companion = FoundIde(0, None, name, name, None, (), name, remote=endpoint)
    return lambda _workspace, _environment: FoundIdes((companion,), ())


def find_companions(
    workspace: Path,
    environment: Mapping[str, str],
    *,
    ancestors: Callable[[], Sequence[int]] = process_ancestors,
    is_alive: Callable[[int], bool] = process_is_alive,
) -> FoundIdes:
    """Find the companions that have ``workspace`` or a folder above it open.

    Blocking; call it in a thread from an event loop.
    """
    root = os.path.realpath(workspace)
    usable, rejected, refused = sort_files(root, discovery_files(environment), read_companion)
    rank = _Rank(environment, ancestors if usable else tuple, is_alive)
    usable.sort(key=rank)
    if isinstance(named := _from_environment(root, environment), FoundIde):
        if named.port not in refused and all(companion.port != named.port for companion in usable):
            usable.append(named)
    elif named is not None:
        rejected.append(named)
    return FoundIdes(tuple(usable), tuple(rejected))


class _Rank:
    def __init__(
        self,
        environment: Mapping[str, str],
        ancestors: Callable[[], Sequence[int]],
        is_alive: Callable[[int], bool],
    ) -> None:
        self._port = number(environment.get(PORT_VARIABLE))
        named = number(environment.get("GEMINI_CLI_IDE_PID"))
        above = ([named] if named else []) + list(ancestors())
        self._distance = {pid: distance for distance, pid in reversed(list(enumerate(above)))}
        self._is_alive = is_alive

    def __call__(self, companion: FoundIde) -> tuple[bool, int, bool, int]:
        pid = companion.pid or 0
        distance = self._distance.get(pid, len(self._distance) + MAXIMUM_LEVELS)
        return companion.port != self._port, distance, not self._is_alive(pid), -pid


def discovery_files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files with a name of this protocol, in the current or the old form."""
    yield from named_files(node_temporary_directory(environment) / "gemini" / "ide", _NAME)


def old_number(path: Path) -> int | None:
    """Return the process id in a file name of the old form, without a port; None for the current form."""
    matched = _NAME.fullmatch(path.name)
    return int(matched[1]) if matched and matched[2] is None else None


def read_companion(path: Path) -> FoundIde | RejectedFile:
    """Return the companion in a discovery file, or the rejected file with the reason. Blocking."""
    matched = _NAME.fullmatch(path.name)
    try:
        value = read_object(path)
    except UnusableFileError as error:
        return RejectedFile(str(path), str(error))
    return companion_of(path, value, int(matched[1]) if matched else None)


def companion_of(path: Path, value: JsonObject, pid: int | None) -> FoundIde | RejectedFile:
    """Return the companion described by the content of a file; ``pid`` is the process in the file."""
    port = port_number(value.get("port"))
    if port is None:
        return RejectedFile(str(path), "expected port as a number from 1 to 65535")
    folders = value.get("workspacePath")
    if not isinstance(folders, str) or not folders:
        return RejectedFile(str(path), "expected workspacePath as the open folders; none is open in that IDE")
    token = value.get("authToken")
    if token is not None and not (isinstance(token, str) and token.isascii() and token.isprintable()):
        return RejectedFile(str(path), "expected authToken as printable text")
    info = value.get("ideInfo")
    identity = cast("dict[str, Any]", info if isinstance(info, dict) else {})
    name, display_name = identity.get("name"), identity.get("displayName")
    has_identity = all(isinstance(text, str) and text for text in (name, display_name))
    name = name if isinstance(name, str) and name else "ide"
    return FoundIde(
        port,
        token,
        name,
        display_name if isinstance(display_name, str) and display_name else name,
        pid,
        folders_of(folders.split(os.pathsep)),
        str(path),
        has_identity=has_identity,
    )


def _from_environment(root: str, environment: Mapping[str, str]) -> FoundIde | RejectedFile | None:
    port = port_number(environment.get(PORT_VARIABLE))
    if port is None:
        return None
    source = PORT_VARIABLE
    folders = folders_of(environment.get(WORKSPACE_VARIABLE, "").split(os.pathsep))
    if not folders:
        return RejectedFile(source, f"expected {WORKSPACE_VARIABLE} beside it, as there is no discovery file")
    if reason := mismatch(root, folders):
        return RejectedFile(source, reason)
    token = environment.get("GEMINI_CLI_IDE_AUTH_TOKEN")
    return FoundIde(port, token, "ide", "IDE", number(environment.get("GEMINI_CLI_IDE_PID")), folders, source)
