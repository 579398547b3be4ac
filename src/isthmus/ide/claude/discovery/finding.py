"""Finds the IDEs with lock files of the Claude IDE protocol, best first, as an agent CLI does.

Reads the lock files in both folders that real editors use, the environment and the process tree. The order is: the port
in the environment, even with other folders; the IDE that we run in; IDEs whose process exists; the closest folder; the
newest file. Makes no connections and removes no files.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from isthmus.encoding.codec import JsonObject
from isthmus.files.locations import absolute
from isthmus.ide.discovery_file import (
    RejectedFile,
    UnusableFileError,
    folders_of,
    named_files,
    number,
    port_number,
    read_object,
)
from isthmus.ide.ide_protocol import FoundIde, FoundIdes, sort_files
from isthmus.ide.processes import process_ancestors, process_is_alive

PORT_VARIABLE = "CLAUDE_CODE_SSE_PORT"
CONFIGURATION_VARIABLE = "CLAUDE_CONFIG_DIR"
_NAME = re.compile(r"(\d{1,5})\.lock")


def lock_folders(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders of lock files: below CLAUDE_CONFIG_DIR, and ``~/.claude/ide``, which many editors use."""
    home = environment.get("HOME")
    usual = (Path(home) if home else Path.home()) / ".claude" / "ide"
    configured = environment.get(CONFIGURATION_VARIABLE)
    folders = (Path(absolute(configured)) / "ide", usual) if configured else (usual,)
    return tuple(dict.fromkeys(folders))


def find_ides(
    workspace: Path,
    environment: Mapping[str, str],
    *,
    ancestors: Callable[[], Sequence[int]] = process_ancestors,
    is_alive: Callable[[int], bool] = process_is_alive,
) -> FoundIdes:
    """Find the IDEs that have ``workspace`` or a folder above it open.

    Blocking; call it in a thread from an event loop.
    """
    root = os.path.realpath(workspace)
    named = port_number(environment.get(PORT_VARIABLE))
    listed, rejected, refused = sort_files(root, lock_files(environment), read_ide, named=named)
    usable: dict[int, FoundIde] = {}
    for ide in listed:
        usable.setdefault(ide.port, ide)
    if named is not None and named not in usable and named not in refused:
        usable[named] = FoundIde(named, None, "IDE", "IDE", None, (), PORT_VARIABLE)
    above = {pid: distance for distance, pid in reversed(list(enumerate(ancestors() if usable else ())))}

    def rank(ide: FoundIde) -> tuple[bool, int, bool, int, float]:
        pid = ide.pid or 0
        distance = above.get(pid, len(above) + 1)
        return ide.port != named, distance, not is_alive(pid), -_closeness(root, ide.folders), -ide.modified_at

    return FoundIdes(tuple(sorted(usable.values(), key=rank)), tuple(rejected))


def lock_files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files in both folders that have the name of a lock file."""
    for folder in lock_folders(environment):
        yield from named_files(folder, _NAME)


def read_ide(path: Path) -> FoundIde | RejectedFile:
    """Return the IDE in a lock file, or the rejected file with the reason. Blocking."""
    try:
        return _ide(path, read_object(path), path.stat().st_mtime)
    except UnusableFileError as error:
        return RejectedFile(str(path), str(error))
    except OSError as error:
        return RejectedFile(str(path), f"cannot be read: {error.strerror}")


def _ide(path: Path, value: JsonObject, modified_at: float) -> FoundIde:
    port = port_number(path.stem)
    if port is None:
        raise UnusableFileError("expected the file's name to be a port from 1 to 65535")
    if (transport := value.get("transport", "ws")) != "ws":
        raise UnusableFileError(f"expected transport 'ws', received {str(transport)[:50]!r}")
    listed = value.get("workspaceFolders")
    folders = folders_of(cast("list[object]", listed) if isinstance(listed, list) else ())
    # A relative folder would mean our own working directory.
    absolute = tuple(folder for folder in folders if Path(folder).is_absolute())
    if not absolute:
        raise UnusableFileError("expected workspaceFolders as absolute paths; none is open in that IDE")
    token = value.get("authToken")
    if token is not None and not (isinstance(token, str) and token.isascii() and token.isprintable()):
        raise UnusableFileError("expected authToken as printable text")
    name = value.get("ideName")
    name = name if isinstance(name, str) and name else "IDE"
    return FoundIde(
        port,
        token or None,
        name,
        name,
        number(value.get("pid")),
        absolute,
        str(path),
        modified_at=modified_at,
    )


def _closeness(root: str, folders: Sequence[str]) -> int:
    """Return the depth of the deepest folder that contains the workspace; 0 if there is none."""
    resolved = [Path(os.path.realpath(folder)) for folder in folders]
    return max((len(folder.parts) for folder in resolved if Path(root).is_relative_to(folder)), default=0)
