"""/restore: lists the checkpoints of the session, and restores one."""

from collections.abc import Sequence

from isthmus.agent.commands.builtin.restore_checkpoint import (
    about_checkpoint,
    checkpoint_list,
    restorable,
    restore_files,
)
from isthmus.agent.commands.port.base import ArgumentCompletion, CommandNode, CompletionContext, argument
from isthmus.agent.commands.port.context import CommandContext, CommandError, CommandRefusedError
from isthmus.development_tool import ToolCallStatus
from isthmus.internal_events import Restored


async def restore(context: CommandContext) -> None:
    """List the checkpoints; with an id, restore files and conversation."""
    checkpoints, checkpoint_id = context.resources.checkpoints, context.args.strip()
    if checkpoints is None:
        raise CommandError("This agent keeps no checkpoints.", "no_checkpoints")
    if not checkpoint_id:
        await context.say(checkpoint_list(await restorable(context.session, checkpoints)))
        return
    call = await restore_files(context, checkpoints, checkpoint_id)
    if call.status is ToolCallStatus.CANCELLED:
        await context.say("Nothing was restored.")
        raise CommandRefusedError
    await context.turn.emit(Restored(checkpoint_id))
    said = call.output.text if call.output is not None else ""
    await context.say(f"{said}\nThe conversation is back at its state before that edit.")


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
