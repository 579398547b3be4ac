"""Applies the changes of a tried command to the real folder, if it is still as it was when the command was tried.

Blocks. Nothing is written through links or over a file that changed. Files are replaced, so that other names of the
same file (hard links) keep their content.
"""

import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from isthmus.errors import IsthmusError
from isthmus.files.atomic import remove_if_unchanged, write_if_unchanged
from isthmus.files.nofollow import folder_of
from isthmus.tools.shell.trials.archive import MAXIMUM_BYTES
from isthmus.tools.shell.trials.copying import TrialError, state_in
from isthmus.tools.shell.trials.effect import EntryState, Kind, TriedChange, in_order, stale_paths


class ApplyError(IsthmusError):
    """Failure to apply changes; the text says what was applied before."""


def apply_changes(root: Path, changes: Iterable[TriedChange], contents: Mapping[str, bytes]) -> None:
    """Apply changes to the folder `root`, an absolute path without links.

    Raises:
        ApplyError: the folder has changed, and nothing was applied; or one change failed, and those before it stay.
    """
    steps = in_order(changes)
    olds: dict[str, bytes] = {}
    now: dict[str, EntryState | None] = {}
    for change in steps:
        try:
            now[change.path], olds[change.path] = state_in(root, change.path, MAXIMUM_BYTES)
        except (OSError, TrialError):
            now[change.path] = EntryState(Kind.OTHER)
    if stale := stale_paths(steps, now):
        raise ApplyError(f"{', '.join(stale[:5])} changed since the command was tried; nothing was applied")
    done: list[str] = []
    for change in steps:
        try:
            _apply(root / change.path, change, olds[change.path], contents.get(change.path, b""))
        except (OSError, IsthmusError) as error:
            before = f"; applied before: {', '.join(done)}" if done else "; nothing was applied"
            raise ApplyError(f"{change.path} could not be changed: {error}{before}") from error
        done.append(change.path)


def _apply(path: Path, change: TriedChange, old: bytes, new: bytes) -> None:
    before, after = change.before, change.after
    kind = (after or before or EntryState(Kind.OTHER)).kind
    if after is None:
        _remove(path, kind, old, change)
    elif kind is Kind.FOLDER:
        with folder_of(path) as (folder, name):
            os.mkdir(name, after.mode & 0o777, dir_fd=folder)
    elif kind is Kind.LINK:
        _link(path, after.content, None if before is None else before.content)
    elif before is not None and before.content == after.content:
        with folder_of(path) as (folder, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                os.fchmod(descriptor, after.mode & 0o777)
            finally:
                os.close(descriptor)
    else:
        mode = after.mode & 0o777
        write_if_unchanged(path, new, None if before is None else old, mode=mode, through_links=False)


def _remove(path: Path, kind: Kind, old: bytes, change: TriedChange) -> None:
    if kind is Kind.FILE:
        remove_if_unchanged(path, old)
        return
    with folder_of(path) as (folder, name):
        if kind is Kind.FOLDER:
            os.rmdir(name, dir_fd=folder)
        elif change.before is not None and os.readlink(name, dir_fd=folder) == change.before.content:
            os.unlink(name, dir_fd=folder)


def _link(path: Path, target: str, former: str | None) -> None:
    with folder_of(path) as (folder, name):
        if former is None:
            os.symlink(target, name, dir_fd=folder)
            return
        if os.readlink(name, dir_fd=folder) != former:
            raise ApplyError("the link changed")
        temporary = f".isthmus-{secrets.token_hex(6)}.tmp"
        os.symlink(target, temporary, dir_fd=folder)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
