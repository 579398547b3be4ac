"""Folders of our own files on this machine, and writing files with secrets: with mode 0600 from the first moment.

Folders that a protocol prescribes are with that protocol.
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
    """Return the platform's folder for our data; not made here."""
    base = environment.get("XDG_DATA_HOME")
    if base:
        return Path(base) / "isthmus"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "isthmus"
    return Path.home() / ".local" / "share" / "isthmus"


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the platform's folder for what can be found out anew; not made here."""
    base = environment.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "isthmus"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "isthmus"
    return Path.home() / ".cache" / "isthmus"


def runtime_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the platform's folder for sockets and what lives no longer than a login; not made here."""
    base = environment.get("XDG_RUNTIME_DIR")
    if base and Path(base).is_dir():  # in containers and under sudo it is often set and missing
        return Path(base) / "isthmus"
    return Path(tempfile.gettempdir()) / f"isthmus-{os.getuid()}"


def make_private_directory(path: Path) -> None:
    """Make a folder and its missing parents, for this user alone. One that exists is left as it is.

    Raises:
        OSError: it cannot be made.
    """
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)


def require_own_directory(path: Path) -> None:
    """Make sure that nobody else can put files in a folder: others may guess its name in a shared /tmp.

    Raises:
        PermissionError: it belongs to somebody else, or is a symlink.
    """
    if path.is_symlink() or path.stat().st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to somebody else; set XDG_RUNTIME_DIR to a folder of your own")
    path.chmod(0o700)


def write_private(path: Path, content: JsonObject) -> None:
    """Write a JSON file atomically into an existing folder, unreadable for others and never through a link.

    Raises:
        OSError: it cannot be written.
    """
    write_atomic(path, json.dumps(content).encode(), mode=0o600, through_links=False)


def absolute(path: str) -> str:
    """Return the absolute path without ``..``, symlinks kept: the name that the user used."""
    return os.path.abspath(path)  # noqa: PTH100 - Path.resolve would follow symlinks, Path.absolute keeps ".."
