"""The session to which each worktree of this machine belongs, as a small file beside it.

The name of a worktree does not tell its session, and a data folder may have been used with several journals: without
this file nobody could tell whose worktree one is, and it is left alone.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from isthmus.encoding.json_shapes import as_object
from isthmus.files.atomic import read_regular, write_atomic
from isthmus.record import record
from isthmus.worktrees.errors import WorktreeError
from isthmus.worktrees.names import session_name

FOLDER = "owners"
MAXIMUM_BYTES = 16 * 1024 * 1024


@record
class WorktreeOwner:
    """A session: its journal as operators name it, its user (empty: the local one) and its context id."""

    journal: str
    user: str
    context_id: str

    @property
    def session(self) -> str:
        """Name of the session's folder and refs."""
        return session_name(self.user, self.context_id)


@record
class OwnedWorktree:
    """A worktree with its owner, and the seconds since the owner opened it here for the last time."""

    owner: WorktreeOwner
    idle_seconds: float


def write_owner(repository_folder: Path, owner: WorktreeOwner) -> None:
    """Note that an owner opens its worktree below the folder of a repository. The caller holds the mirror's lock.

    Raises:
        WorktreeError: it cannot be written.
    """
    path = _path(repository_folder, owner.session)
    stated = {"journal": owner.journal, "user": owner.user, "context": owner.context_id}
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomic(path, json.dumps(stated).encode(), mode=0o600)
    except OSError as error:
        raise WorktreeError(f"{path} cannot be written: {error.strerror}") from error


def forget_owner(repository_folder: Path, session: str) -> None:
    """Remove the note of a session whose worktree is gone."""
    with suppress(OSError):
        _path(repository_folder, session).unlink()


def owned_worktrees(repository_folder: Path) -> list[OwnedWorktree]:
    """Return the worktrees below the folder of a repository whose owner is known, by name. Blocking."""
    return sorted(_owned(repository_folder / FOLDER), key=lambda found: found.owner.session)


def _owned(folder: Path) -> Iterator[OwnedWorktree]:
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:
        return
    for name in names:
        with suppress(OSError, ValueError, KeyError, RecursionError):
            read = as_object(json.loads(read_regular(folder / name, MAXIMUM_BYTES, through_links=False)))
            owner = WorktreeOwner(*(str(read[key]) for key in ("journal", "user", "context")))
            if name == f"{owner.session}.json":
                yield OwnedWorktree(owner, time.time() - (folder / name).stat().st_mtime)


def _path(repository_folder: Path, session: str) -> Path:
    return repository_folder / FOLDER / f"{session}.json"
