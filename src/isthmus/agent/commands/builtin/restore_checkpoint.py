"""Restoring a checkpoint: the available checkpoints, and the tool call that restores one after a user agreed.

The store restores the files (:mod:`isthmus.checkpoints.base`), the session restores the conversation: a command emits
Restored or Rewound after the call has succeeded. Not here: the commands, see
:mod:`isthmus.agent.commands.builtin.restore` and :mod:`isthmus.agent.commands.builtin.rewind`.
"""

import difflib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from isthmus.agent.commands.port.context import CommandContext, ToolInvocation, error_of
from isthmus.agent.session.session import Session
from isthmus.checkpoints.base import (
    CheckpointError,
    CheckpointFor,
    CheckpointInfo,
    Checkpoints,
    FileRestore,
    RestorePlan,
    RestoreReport,
)
from isthmus.development_tool import (
    ConfirmationDetails,
    ErrorDetails,
    GenericDetails,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.internal_events import Checkpoint
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolFailed, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {"checkpoint_id": {"type": "string", "description": "The checkpoint to go back to."}},
    "required": ["checkpoint_id"],
}
SHOWN_FILES = 50


async def restorable(session: Session, checkpoints: Checkpoints) -> Sequence[CheckpointInfo]:
    """Return the checkpoints to which both files and conversation can be restored, newest first.

    The one before a subagent has the files that the subagent edited; if it edited none, it is left out.

    Raises:
        CheckpointError: the store is not usable.
    """
    found: list[CheckpointInfo] = []
    of_others: list[str] = []
    for info in await checkpoints.list(session.checkpoints_key):
        if info.checkpoint_id not in session.conversation.checkpoints:
            of_others += info.files
        else:
            if files := info.files or tuple(sorted(set(of_others))):
                found.append(replace(info, files=files))
            of_others = []
    return found


async def undo_of(tool_call_id: str, session: Session, checkpoints: Checkpoints) -> str | None:
    """Return the checkpoint taken before a call that restored another one; None if the call changed no file.

    The lookup in the store also finds it after a crash in the middle of that call.

    Raises:
        CheckpointError: the store is not usable.
    """
    kept = await checkpoints.list(session.checkpoints_key)
    return next((info.checkpoint_id for info in kept if info.tool_call_id == tool_call_id), None)


async def restore_files(context: CommandContext, checkpoints: Checkpoints, checkpoint_id: str) -> ToolCall:
    """Restore the files of a checkpoint in a call, and return the call: it succeeded, or the user refused it.

    Raises:
        CommandError: the checkpoint is not known, or not every file could be restored.
    """
    tool = RestoreCheckpoint(checkpoints, context.session)
    (call,) = await context.call(ToolInvocation(tool, {"checkpoint_id": checkpoint_id}))
    undo_id = await undo_of(call.tool_call_id, context.session, checkpoints)
    if undo_id is not None and undo_id not in context.session.conversation.checkpoints:
        # Before the conversation is restored, so that the undo leads back to its present state.
        await context.turn.emit(Checkpoint(undo_id, call.tool_call_id))
    if call.status is ToolCallStatus.CANCELLED or (call.status is ToolCallStatus.SUCCEEDED and call.output is not None):
        return call
    raise error_of(call, "Nothing was restored.", "not_restored")


def checkpoint_list(infos: Sequence[CheckpointInfo]) -> str:
    """Return the list for a user: id, local time, the files and the prompt's first line."""
    if not infos:
        return "This session has no checkpoint yet: one is taken before each edit of a file."
    lines = [f"{info.checkpoint_id}  {about_checkpoint(info)}" for info in infos]
    return "\n".join([*lines, "", "/restore ID restores files and conversation to their state before that edit."])


def about_checkpoint(info: CheckpointInfo) -> str:
    """Return the description of a checkpoint for a user: local time, the files and the prompt's first line."""
    taken = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(info.taken_at))
    return f"{taken}  {_names(info.files)}  {info.about}".rstrip()


class RestoreCheckpoint:
    """Tool of the command that restores the files of one session; the model does not receive it.

    If the approval policy requires an answer, the question lists the files. Like any call with an effect, it runs at
    most once.
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
        if checkpoint_id not in self._session.conversation.checkpoints:
            message = f"This session has no checkpoint {checkpoint_id[:100]!r}{_instead(checkpoint_id, self._session)}"
            raise ToolFailure(message, "unknown_checkpoint")
        try:
            plan = await self._checkpoints.plan(self._session.checkpoints_key, checkpoint_id)
        except CheckpointError as error:
            raise ToolFailure(str(error), "checkpoint_failure") from error
        return GenericDetails(_question(plan))

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Restore the files."""
        session = self._session
        reason = CheckpointFor(
            session.checkpoints_key,
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
    known = list(session.conversation.checkpoints)
    if not known:
        return " and no other one yet: one is taken before each edit of a file."
    likely = difflib.get_close_matches(checkpoint_id[:100].lower(), known, n=3)
    return f". Did you mean {' or '.join(likely)}?" if likely else f". The latest are: {', '.join(known[-5:])}."


def _question(plan: RestorePlan) -> str:
    if not plan.files:
        return f"Go back to checkpoint {plan.checkpoint_id}: no file has to change, only the conversation is restored."
    lines = [f"Go back to checkpoint {plan.checkpoint_id}. Files:", *map(_line, plan.files[:SHOWN_FILES])]
    if len(plan.files) > SHOWN_FILES:
        lines.append(f"- and {len(plan.files) - SHOWN_FILES} more")
    if any(file.changed_by_others and file.reason is None for file in plan.files):
        lines.append("Changes by others are kept as another checkpoint, which can be restored in turn.")
    return "\n".join(lines)


def _line(file: FileRestore) -> str:
    changed = " (changed by another program since)" if file.changed_by_others else ""
    return f"- {file.path}: {file.action}{changed}" + (f": {file.reason}" if file.reason else "")


def _format(report: RestoreReport) -> str:
    lines = list(map(_line, report.done))
    if report.problems:
        lines = ["Not every file could be restored, so the conversation is unchanged.", *lines]
        lines += [f"- not restored: {problem}" for problem in report.problems]
    if not lines:
        return "No file had to change."
    if report.undo_id is not None:
        lines.append(f"The previous state of the files is kept as checkpoint {report.undo_id}.")
    return "\n".join(lines)


def _names(files: Sequence[str]) -> str:
    return ", ".join(path.rpartition("/")[2] for path in files)
