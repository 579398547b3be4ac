"""The Checkpoints port: the bytes of files before each edit of an agent, and the way back to them.

Kept apart from the user's git, which is neither needed nor touched. What the conversation was at a checkpoint is
not here: that follows from the session's events (``isthmus.agent.session``). Only edits that were announced to the
store are known; what a command wrote is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from isthmus.errors import IsthmusError


class CheckpointError(IsthmusError):
    """A checkpoint cannot be taken, found or gone back to; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class CheckpointFor:
    """The call of a task that a checkpoint is taken for. ``about`` is a line for lists, such as the prompt's first."""

    context_id: str
    task_id: str
    tool_call_id: str
    workspace: Path
    about: str = ""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class FileRestore:
    """Restore of one file; ``path`` is absolute.

    ``changed_by_others``: the file was changed after the agent's last edit. ``why`` is set when it cannot be restored.
    """

    path: str
    action: RestoreAction
    changed_by_others: bool = False
    why: str | None = None


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Effects that a restore of a checkpoint would have; unchanged files are not listed."""

    checkpoint_id: str
    files: tuple[FileRestore, ...]


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """Outcome of a restore. ``undo_id`` is the checkpoint of the files as they were before: nothing is ever lost.

    It is None when no file had to be changed. ``problems`` describe the files that could not be restored.
    """

    done: tuple[FileRestore, ...]
    undo_id: str | None = None
    problems: tuple[str, ...] = ()


class Checkpoints(Protocol):
    """A store of checkpoints. All methods raise :class:`CheckpointError` when the store cannot be used."""

    async def take(self, reason: CheckpointFor, paths: Sequence[Path]) -> str:
        """Keep content, mode and existence of these files (absolute, resolved) as they are; the checkpoint's id.

        They are on the disk when it returns. A file that is too large is noted as not kept.
        """
        ...

    async def edited(self, checkpoint_id: str) -> None:
        """Note the state of the files after the edit that a checkpoint was taken for."""
        ...

    async def list(self, context_id: str) -> "Sequence[CheckpointInfo]":
        """Return the checkpoints of a session, newest first."""
        ...

    async def plan(self, context_id: str, checkpoint_id: str) -> RestorePlan:
        """Return the effects of restoring the files that this session edited since a checkpoint.

        Raises:
            CheckpointError: the session has no such checkpoint (any more).
        """
        ...

    async def restore(self, reason: CheckpointFor, checkpoint_id: str) -> RestoreReport:
        """Put those files back; ``reason`` is whom the checkpoint that undoes it is taken for.

        Raises:
            CheckpointError: the session has no such checkpoint (any more).
        """
        ...

    async def delete(self, task_ids: "Sequence[str]") -> None:
        """Remove the checkpoints of tasks, and the content that no other one needs, for good."""
        ...

    async def aclose(self) -> None:
        """Finish what is under way and close."""
        ...
