"""Going back to a checkpoint: what can be gone back to, and the tool call that does it after a user agreed.

The files are the store's matter (:mod:`isthmus.checkpoints.base`), the conversation is the session's: the command
yields Restored after the call has succeeded. Deliberately not here: the command itself.
"""

import difflib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.agent.session import Session
from isthmus.checkpoints.base import (
    CheckpointError,
    CheckpointFor,
    CheckpointInfo,
    Checkpoints,
    FileRestore,
    RestorePlan,
    RestoreReport,
)
from isthmus.development_tool import ConfirmationDetails, ErrorDetails, GenericDetails, ToolOutput
from isthmus.tools.base import Arguments, CallContext, ToolContext, ToolFailed, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.failure import ToolFailure

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {"checkpoint_id": {"type": "string", "description": "The checkpoint to go back to."}},
    "required": ["checkpoint_id"],
}
SHOWN_FILES = 50


async def restorable(session: Session, checkpoints: Checkpoints) -> Sequence[CheckpointInfo]:
    """Return the checkpoints that files and conversation can go back to, newest first.

    Raises:
        CheckpointError: the store cannot be used.
    """
    kept = await checkpoints.list(session.checkpoint_scope)
    return [info for info in kept if info.checkpoint_id in session.checkpoints]


async def undo_of(tool_call_id: str, session: Session, checkpoints: Checkpoints) -> str | None:
    """Return the checkpoint of the files before the call that restored another one; None when it touched no file.

    It is looked up in the store, so that it is found also after a crash in the middle of that call.

    Raises:
        CheckpointError: the store cannot be used.
    """
    kept = await checkpoints.list(session.checkpoint_scope)
    return next((info.checkpoint_id for info in kept if info.tool_call_id == tool_call_id), None)


def checkpoint_list(infos: Sequence[CheckpointInfo]) -> str:
    """Return the list for a user: id, local time, the files and the prompt's first line."""
    if not infos:
        return "There is no checkpoint in this session: one is taken before each edit of a file."
    lines = [
        f"{info.checkpoint_id}  {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(info.taken_at))}"
        f"  {_names(info.files)}  {info.about}".rstrip()
        for info in infos
    ]
    return "\n".join([*lines, "", "/restore ID brings files and conversation back to before that edit."])


class RestoreCheckpoint:
    """Puts back the files of one session, as a tool of its command; the model does not have it.

    Its call asks a user with the list of files, where the approval policy asks at all, and runs at most once like any
    other with an effect.
    """

    name = "restore"
    description = "Puts files back to what they were at a checkpoint."
    parameters = PARAMETERS
    kind = ToolKind.OTHER

    def __init__(self, checkpoints: Checkpoints, session: Session) -> None:
        self._checkpoints = checkpoints
        self._session = session

    def describe(self, arguments: Arguments) -> str:
        """Return the description of the call, with the checkpoint's id."""
        return f"Restore checkpoint {_id_of(arguments)}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the files that would change, as GenericDetails."""
        checkpoint_id = _id_of(arguments)
        if checkpoint_id not in self._session.checkpoints:
            message = f"This session has no checkpoint {checkpoint_id[:100]!r}{_instead(checkpoint_id, self._session)}"
            raise ToolFailure(message, "unknown_checkpoint")
        try:
            plan = await self._checkpoints.plan(self._session.checkpoint_scope, checkpoint_id)
        except CheckpointError as error:
            raise ToolFailure(str(error), "checkpoint_failure") from error
        return GenericDetails(_question(plan))

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Put the files back."""
        session = self._session
        reason = CheckpointFor(
            session.checkpoint_scope,
            session.task_id,
            context.tool_call_id,
            context.workspace.root,
            f"before /restore {_id_of(arguments)}",
        )
        try:
            report = await self._checkpoints.restore(reason, _id_of(arguments))
        except CheckpointError as error:
            raise ToolFailure(str(error), "checkpoint_failure") from error
        text = _format(report)
        if report.problems:
            return ToolFailed(ErrorDetails(text, "restore_incomplete"))
        return ToolSucceeded(ToolOutput(text=text), text)


def _id_of(arguments: Arguments) -> str:
    named = arguments.get("checkpoint_id")
    if not isinstance(named, str) or not named.strip():
        raise ToolFailure("restore expects checkpoint_id, the id of a checkpoint as text", "invalid_arguments")
    return named.strip()


def _instead(checkpoint_id: str, session: Session) -> str:
    """Return a hint at what may have been meant by an unknown checkpoint id."""
    known = list(session.checkpoints)
    if not known:
        return ", and no other one: one is taken before each edit of a file."
    likely = difflib.get_close_matches(checkpoint_id[:100].lower(), known, n=3)
    return f". Did you mean {' or '.join(likely)}?" if likely else f". The latest are: {', '.join(known[-5:])}."


def _question(plan: RestorePlan) -> str:
    if not plan.files:
        return f"Go back to checkpoint {plan.checkpoint_id}: no file has to change, only the conversation goes back."
    lines = [f"Go back to checkpoint {plan.checkpoint_id}. Files:", *map(_line, plan.files[:SHOWN_FILES])]
    if len(plan.files) > SHOWN_FILES:
        lines.append(f"- and {len(plan.files) - SHOWN_FILES} more")
    if any(file.changed_by_others and file.why is None for file in plan.files):
        lines.append("What others changed is kept as a checkpoint of its own, which can be restored in turn.")
    return "\n".join(lines)


def _line(file: FileRestore) -> str:
    changed = " (changed by somebody else since)" if file.changed_by_others else ""
    return f"- {file.path}: {file.action}{changed}" + (f": {file.why}" if file.why else "")


def _format(report: RestoreReport) -> str:
    lines = list(map(_line, report.done))
    if report.problems:
        lines = ["Not every file could be restored, so the conversation stays as it is.", *lines]
        lines += [f"- not restored: {problem}" for problem in report.problems]
    if not lines:
        return "No file had to change."
    if report.undo_id is not None:
        lines.append(f"The files as they were before this are kept as checkpoint {report.undo_id}.")
    return "\n".join(lines)


def _names(files: Sequence[str]) -> str:
    return ", ".join(path.rpartition("/")[2] for path in files)
