"""The Checkpoints port: the content of files before each edit of an agent, and its restore.

Checkpoints are independent of the user's git, which is neither required nor changed. The store knows only announced
edits, not files written by commands. Not here: the state of the conversation at a checkpoint, which follows from the
session's events, see ``isthmus.agent.session.session``.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from isthmus.errors import IsthmusError
from isthmus.record import record


class CheckpointError(IsthmusError):
    """Failure to take, find or restore a checkpoint; the text contains the reason and advice."""


@record
class CheckpointFor:
    """The call for which a checkpoint is taken. ``about`` is a line for lists, such as the prompt's first line."""

    context_id: str
    task_id: str
    tool_call_id: str
    workspace: Path
    about: str = ""


@record
class CheckpointInfo:
    """A checkpoint in the list. ``taken_at`` is Unix time in seconds; ``files`` are absolute paths."""

    checkpoint_id: str
    taken_at: float
    tool_call_id: str
    about: str
    files: tuple[str, ...]


class RestoreAction(StrEnum):
    """Effect of a restore on a file."""

    WRITE = "put back"
    REMOVE = "removed, since it did not exist"
    IMPOSSIBLE = "not restored"


@record
class FileRestore:
    """Restore of one file; ``path`` is absolute.

    ``changed_by_others`` is whether the file was changed after the agent's last edit. ``reason`` is set if it cannot be
    restored.
    """

    path: str
    action: RestoreAction
    changed_by_others: bool = False
    reason: str | None = None


@record
class RestorePlan:
    """Effects of restoring a checkpoint; unchanged files are not listed."""

    checkpoint_id: str
    files: tuple[FileRestore, ...]


@record
class RestoreReport:
    """Outcome of a restore. ``undo_id`` is a checkpoint of the files before the restore, so that nothing is lost.

    It is None if no file had to be changed. ``problems`` describe the files that could not be restored.
    """

    done: tuple[FileRestore, ...]
    undo_id: str | None = None
    problems: tuple[str, ...] = ()


class Checkpoints(Protocol):
    """A store of checkpoints. All methods raise :class:`CheckpointError` if the store is not usable."""

    async def take(self, reason: CheckpointFor, paths: Sequence[Path]) -> str:
        """Keep content, mode and existence of these files (absolute, resolved), and return the checkpoint's id.

        They are on the disk when it returns. A file that is too large is recorded as not kept.
        """
        ...

    async def edited(self, checkpoint_id: str) -> None:
        """Record the state of a checkpoint's files after their edit."""
        ...

    async def list(self, context_id: str) -> "Sequence[CheckpointInfo]":
        """Return the checkpoints of a session, newest first."""
        ...

    async def before(self, context_id: str) -> "Mapping[str, bytes | None]":
        """Return the content of each edited file of a session before its first kept edit; None if it did not exist."""
        ...

    async def plan(self, context_id: str, checkpoint_id: str) -> RestorePlan:
        """Return the effects of restoring the files that this session edited since a checkpoint.

        Raises:
            CheckpointError: the session does not have the checkpoint, or no longer has it.
        """
        ...

    async def restore(self, reason: CheckpointFor, checkpoint_id: str) -> RestoreReport:
        """Restore the files of the plan; ``reason`` is the call for the checkpoint that can undo it.

        Raises:
            CheckpointError: the session does not have the checkpoint, or no longer has it.
        """
        ...

    async def delete(self, task_ids: "Sequence[str]") -> None:
        """Permanently remove the checkpoints of tasks, and content that no other checkpoint needs."""
        ...

    async def aclose(self) -> None:
        """Finish the operation under way and close the store."""
        ...
