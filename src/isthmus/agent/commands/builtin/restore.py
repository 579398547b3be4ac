"""/restore: lists the checkpoints of the session, and restores one."""

from collections.abc import Sequence

from isthmus.agent.commands.builtin.restore_checkpoint import (
    RestoreCheckpoint,
    about_checkpoint,
    checkpoint_list,
    restorable,
    undo_of,
)
from isthmus.agent.commands.port.base import ArgumentCompletion, CommandNode, CompletionContext, argument
from isthmus.agent.commands.port.context import (
    CommandContext,
    CommandError,
    CommandRefusedError,
    ToolInvocation,
    error_of,
)
from isthmus.development_tool import ToolCallStatus
from isthmus.internal_events import Checkpoint, Restored


async def restore(context: CommandContext) -> None:
    """List the checkpoints; with an id, restore files and conversation."""
    checkpoints, checkpoint_id = context.resources.checkpoints, context.args.strip()
    if checkpoints is None:
        raise CommandError("This agent keeps no checkpoints.", "no_checkpoints")
    if not checkpoint_id:
        await context.say(checkpoint_list(await restorable(context.session, checkpoints)))
        return
    tool = RestoreCheckpoint(checkpoints, context.session)
    (call,) = await context.call(ToolInvocation(tool, {"checkpoint_id": checkpoint_id}))
    undo_id = await undo_of(call.tool_call_id, context.session, checkpoints)
    if undo_id is not None and undo_id not in context.session.conversation.checkpoints:
        # Before the conversation is restored, so that the undo leads back to its present state.
        await context.turn.emit(Checkpoint(undo_id, call.tool_call_id))
    if call.status is ToolCallStatus.CANCELLED:
        await context.say("Nothing was restored.")
        raise CommandRefusedError
    if call.status is ToolCallStatus.SUCCEEDED and call.output is not None:
        await context.turn.emit(Restored(checkpoint_id))
        await context.say(f"{call.output.text}\nThe conversation is back at its state before that edit.")
    else:
        raise error_of(call, "Nothing was restored.", "not_restored")


async def _complete(context: CompletionContext, args: str) -> Sequence[ArgumentCompletion]:
    if (checkpoints := context.resources.checkpoints) is None:
        return ()
    found = await restorable(await context.session(), checkpoints)
    return [
        ArgumentCompletion(info.checkpoint_id, about_checkpoint(info))
        for info in found
        if info.checkpoint_id.startswith(args)
    ]


COMMAND = CommandNode(
    "restore",
    "List the checkpoints of this session, or restore files and conversation from one",
    restore,
    (argument("checkpoint", "The id of the checkpoint, as listed"),),
    complete=_complete,
)
