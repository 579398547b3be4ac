"""Folders of Isthmus's own files on this machine, and writing files with secrets, created with mode 0600.

Not here: folders that a protocol prescribes, see the module of that protocol.
"""

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from isthmus.encoding.codec import JsonObject
from isthmus.files.atomic import write_atomic


def data_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the platform's folder for our data, without creating it."""
    base = environment.get("XDG_DATA_HOME")
    if base:
        return Path(base) / "isthmus"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "isthmus"
    return Path.home() / ".local" / "share" / "isthmus"


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the platform's folder for data that can be determined again, without creating it."""
    base = environment.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "isthmus"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "isthmus"
    return Path.home() / ".cache" / "isthmus"


def runtime_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the platform's folder for sockets and other files of a login session, without creating it."""
    base = environment.get("XDG_RUNTIME_DIR")
    if base and Path(base).is_dir():  # in containers and under sudo it is often set, but missing
        return Path(base) / "isthmus"
    return Path(tempfile.gettempdir()) / f"isthmus-{os.getuid()}"


def make_private_directory(path: Path) -> None:
    """Create a folder and its missing parents with access only for this user. An existing folder is not changed.

    Raises:
        OSError: the folder cannot be created.
    """
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)


def require_own_directory(path: Path) -> None:
    """Check that no other user can create files in a folder, whose name others may guess in a shared /tmp.

    Raises:
        PermissionError: the folder belongs to another user, or is a symbolic link.
    """
    if path.is_symlink() or path.stat().st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to another user; set XDG_RUNTIME_DIR to a folder of your own")
    path.chmod(0o700)


def write_private(path: Path, content: JsonObject) -> None:
    """Write a JSON file atomically into an existing folder, unreadable for others and never through a link.

    Raises:
        OSError: the file cannot be written.
    """
    write_atomic(path, json.dumps(content).encode(), mode=0o600, through_links=False)


def absolute(path: str) -> str:
    """Return the absolute path without ``..``, but with symbolic links, as the user knows it."""
    return os.path.abspath(path)  # noqa: PTH100 - Path.resolve would follow symlinks, Path.absolute keeps ".."
