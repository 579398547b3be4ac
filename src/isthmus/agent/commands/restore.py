"""/restore: the checkpoints of the session, and the way back to one."""

from isthmus.agent.commands.base import (
    Calls,
    CommandContext,
    CommandNode,
    Fail,
    Keep,
    Refused,
    Say,
    Steps,
    ToolUse,
    argument,
)
from isthmus.agent.restoring import RestoreCheckpoint, checkpoint_list, restorable, undo_of
from isthmus.development_tool import ToolCallStatus
from isthmus.events import Checkpoint, Restored


async def restore(context: CommandContext) -> Steps:
    """List the checkpoints; with an id, put files and conversation back."""
    checkpoints, checkpoint_id = context.resources.checkpoints, context.args.strip()
    if checkpoints is None:
        yield Fail("This agent keeps no checkpoints.", "no_checkpoints")
        return
    if not checkpoint_id:
        yield Say(checkpoint_list(await restorable(context.session, checkpoints)))
        return
    tool = RestoreCheckpoint(checkpoints, context.session)
    (call,) = yield Calls((ToolUse(tool, {"checkpoint_id": checkpoint_id}),))
    undo_id = await undo_of(call.tool_call_id, context.session, checkpoints)
    if undo_id is not None and undo_id not in context.session.checkpoints:
        # Before the conversation goes back: it is what the undo goes back to.
        yield Keep(Checkpoint(undo_id, call.tool_call_id))
    if call.status is ToolCallStatus.CANCELLED:
        yield Say("Nothing was restored.")
        yield Refused()
    elif call.status is ToolCallStatus.SUCCEEDED and call.output is not None:
        yield Keep(Restored(checkpoint_id))
        yield Say(f"{call.output.text}\nThe conversation is again what it was before that edit.")
    else:
        yield Fail(call.error.message if call.error is not None else "Nothing was restored.", "not_restored")


COMMAND = CommandNode(
    "restore",
    "List the checkpoints of this session, or bring files and conversation back to one",
    restore,
    (argument("checkpoint", "The id of the checkpoint, as listed"),),
)
