"""A tried command with its changes as one file, which is kept until the user has answered. Pure.

The name of what was shown is the digest of the file: another content has another name.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

from isthmus.errors import IsthmusError
from isthmus.record import record
from isthmus.tools.shell.trials.effect import EntryState, Kind, TriedChange

MAXIMUM_BYTES = 32 * 1024 * 1024
"""Maximum size in bytes of all new contents."""
_HEAD = "trial.json"


class ArchiveError(IsthmusError):
    """Failure to read what was kept of a tried command."""


@record
class TriedCommand:
    """A command that was tried in a copy: what it printed, what it changed, and the new contents of files by path."""

    command: str
    folder: str
    shown: str
    for_model: str
    changes: tuple[TriedChange, ...]
    contents: Mapping[str, bytes]


def packed(tried: TriedCommand) -> tuple[str, bytes]:
    """Return the digest and the content of the file for a tried command; the same for the same one."""
    head = {
        "command": tried.command,
        "folder": tried.folder,
        "shown": tried.shown,
        "for_model": tried.for_model,
        "changes": [[change.path, _state(change.before), _state(change.after)] for change in tried.changes],
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr(zipfile.ZipInfo(_HEAD), json.dumps(head))
        for number, change in enumerate(tried.changes):
            if change.path in tried.contents:
                file.writestr(zipfile.ZipInfo(str(number)), tried.contents[change.path])
    data = buffer.getvalue()
    return hashlib.sha256(data).hexdigest(), data


def unpacked(data: bytes, digest: str) -> TriedCommand:
    """Return the tried command in a file.

    Raises:
        ArchiveError: the file is not the one with this digest, or is not complete.
    """
    if hashlib.sha256(data).hexdigest() != digest:
        raise ArchiveError("what was kept of the command is not what was shown")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            head: Any = json.loads(file.read(_HEAD))
            changes = tuple(TriedChange(path, _decoded(old), _decoded(new)) for path, old, new in head["changes"])
            names = set(file.namelist())
            contents = {
                change.path: file.read(str(number)) for number, change in enumerate(changes) if str(number) in names
            }
        return TriedCommand(head["command"], head["folder"], head["shown"], head["for_model"], changes, contents)
    except (KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise ArchiveError(f"what was kept of the command cannot be read: {error}") from error


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def _state(state: EntryState | None) -> list[Any] | None:
    return None if state is None else [state.kind.value, state.mode, state.content, state.size]


def _decoded(value: Any) -> EntryState | None:
    return None if value is None else EntryState(Kind(value[0]), int(value[1]), str(value[2]), int(value[3]))
