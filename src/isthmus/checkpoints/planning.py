"""Plans a restore by file, from the states before the edits, after them, and at present. Pure."""

from collections.abc import Mapping

from isthmus.checkpoints.base import FileRestore, RestoreAction, RestorePlan
from isthmus.checkpoints.file_state import FileState
from isthmus.record import record


@record
class KnownFile:
    """A file that was edited since a checkpoint.

    ``target`` is its state before the first of these edits, ``after`` its state after the last one (None: unknown,
    because the process ended during the edit), ``current`` its present state.
    """

    target: FileState
    after: FileState | None
    current: FileState


def plan_restore(checkpoint_id: str, known: Mapping[str, KnownFile]) -> RestorePlan:
    """Return the plan for these files, by path."""
    files = (_plan_file(path, file) for path, file in sorted(known.items()))
    return RestorePlan(checkpoint_id, tuple(file for file in files if file is not None))


def _plan_file(path: str, file: KnownFile) -> FileRestore | None:
    target, current = file.target, file.current
    if target.is_same(current):
        return None
    changed = file.after is not None and not file.after.is_same(current)
    reason: str | None = None
    if target.exists and target.hash is None:
        reason = f"its earlier content was not kept: {target.why_unkept}"
    elif current.exists and current.hash is None:
        reason = f"its present content cannot be kept: {current.why_unkept}"
    if reason is not None:
        return FileRestore(path, RestoreAction.IMPOSSIBLE, changed, reason)
    return FileRestore(path, RestoreAction.WRITE if target.exists else RestoreAction.REMOVE, changed)
