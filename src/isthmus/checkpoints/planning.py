"""The plan of a restore, file by file: pure, from the states kept before, made by the agent, and present now."""

from collections.abc import Mapping
from dataclasses import dataclass

from isthmus.checkpoints.base import FileRestore, RestoreAction, RestorePlan
from isthmus.checkpoints.file_state import FileState


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file that was edited since a checkpoint.

    ``target`` is what it was before the first of these edits, ``after`` what the last one made of it (None: not
    known, since the process ended in the middle), ``current`` what it is now.
    """

    target: FileState
    after: FileState | None
    current: FileState


def planned(checkpoint_id: str, known: Mapping[str, KnownFile]) -> RestorePlan:
    """Return the plan for these files, by path."""
    files = (_restore_of(path, file) for path, file in sorted(known.items()))
    return RestorePlan(checkpoint_id, tuple(file for file in files if file is not None))


def _restore_of(path: str, file: KnownFile) -> FileRestore | None:
    target, current = file.target, file.current
    if target.is_same(current):
        return None
    changed = file.after is not None and not file.after.is_same(current)
    why: str | None = None
    if target.exists and target.hash is None:
        why = f"what it was is not kept: {target.why_unkept}"
    elif current.exists and current.hash is None:
        why = f"what it is now cannot be kept: {current.why_unkept}"
    if why is not None:
        return FileRestore(path, RestoreAction.IMPOSSIBLE, changed, why)
    return FileRestore(path, RestoreAction.WRITE if target.exists else RestoreAction.REMOVE, changed)
