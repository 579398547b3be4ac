"""/rewind: puts conversation and files back to before one of the user's messages, or one of both alone."""

from collections.abc import Sequence

from isthmus.agent.commands.builtin.restore_checkpoint import restorable, restore_files
from isthmus.agent.commands.port.base import ArgumentCompletion, CommandNode, CompletionContext, argument
from isthmus.agent.commands.port.context import CommandContext, CommandError, CommandRefusedError
from isthmus.agent.session.rewinding import RewindPoint
from isthmus.agent.session.session import Session
from isthmus.checkpoints.base import CheckpointInfo, Checkpoints
from isthmus.development_tool import ToolCallStatus
from isthmus.internal_events import REWIND_NOTE, ContextNote, Rewound
from isthmus.text.units import show_count
from isthmus.text.visible import visible_line, with_ellipsis

BOTH, CONVERSATION, FILES = "both", "conversation", "files"
PARTS = (BOTH, CONVERSATION, FILES)
"""Parts that can be put back."""
LONGEST_MESSAGE = 100
"""Maximum number of characters of a message in the list."""
NO_MESSAGES = "There is no message to go back to yet."
NO_EDIT = "No file was edited since that message."


async def rewind(context: CommandContext) -> None:
    """List the messages; with a number, put back what the user names."""
    session, checkpoints = context.session, context.resources.checkpoints
    if not context.args.strip():
        await context.say(_list(session, await _edits(session, checkpoints)))
        return
    if session.command_texts:
        return  # It ran before a crash: what it said last stands before its last step.
    point, part = _chosen(context)
    said: list[str] = []
    if part != CONVERSATION:
        said.append(await _put_files_back(context, checkpoints, point, is_alone=part == FILES))
    if part != FILES:
        earlier = next(reversed(session.conversation.ends), "")
        said.append(f"The conversation is back before your message {_short(point)!r}.")
        if part == CONVERSATION:
            said.append("Files are unchanged.")
        if earlier:
            said.append(f"To have what came after it again: /chat fork {earlier[:8]} NAME, then /chat resume NAME.")
    await context.say("\n".join(said))
    if part != FILES:
        await context.turn.emit(Rewound(point.number, point.text))


def _chosen(context: CommandContext) -> tuple[RewindPoint, str]:
    """Return the message before which to go back, and the part that is put back."""
    number, _, part = context.args.strip().partition(" ")
    part = part.strip() or BOTH
    if part not in PARTS:
        raise CommandError(
            f"Expected one of {', '.join(PARTS)}, received {visible_line(part)[:100]!r}.", "unknown_part"
        )
    point = context.session.conversation.rewind_points.find(int(number[:9])) if number.isdecimal() else None
    if point is None:
        numbers = ", ".join(str(known.number) for known in context.session.conversation.rewind_points.points[-20:])
        known = f"This conversation has the messages {numbers}; /rewind lists them." if numbers else NO_MESSAGES
        raise CommandError(f"There is no message {visible_line(number)[:100]!r}. {known}", "unknown_message")
    return point, part


async def _put_files_back(
    context: CommandContext, checkpoints: Checkpoints | None, point: RewindPoint, *, is_alone: bool
) -> str:
    """Restore the files, if the user agrees, and return what became of them."""
    info = _first_edit(point, await _edits(context.session, checkpoints), context.session)
    if checkpoints is None or info is None:
        return NO_EDIT
    call = await restore_files(context, checkpoints, info.checkpoint_id)
    if call.status is ToolCallStatus.CANCELLED:
        await context.say("Nothing was rewound.")
        raise CommandRefusedError
    if is_alone:
        # The model goes on, and has written these files otherwise.
        names = ", ".join(info.files)
        text = f"[Isthmus: the user put files back to before an earlier message, among them: {names}]"
        await context.turn.emit(ContextNote(REWIND_NOTE, text))
    return call.output.text or "" if call.output is not None else ""


async def _edits(session: Session, checkpoints: Checkpoints | None) -> Sequence[CheckpointInfo]:
    return () if checkpoints is None else await restorable(session, checkpoints)


def _first_edit(point: RewindPoint, edits: Sequence[CheckpointInfo], session: Session) -> CheckpointInfo | None:
    """Return the first checkpoint after a message; None if no file was edited since."""
    later = {
        checkpoint_id: at
        for at, checkpoint_id in enumerate(session.conversation.checkpoints)
        if at >= point.checkpoints
    }
    since = [info for info in edits if info.checkpoint_id in later]
    return min(since, key=lambda info: later[info.checkpoint_id], default=None)


def _list(session: Session, edits: Sequence[CheckpointInfo]) -> str:
    points = session.conversation.rewind_points.points
    if not points:
        return NO_MESSAGES
    lines = [f"{point.number}  {_about(point, edits, session)}" for point in points]
    how = "/rewind NUMBER puts conversation and files back to before that message; conversation or files behind the"
    return "\n".join((*lines, "", f"{how} number puts back that alone."))


def _about(point: RewindPoint, edits: Sequence[CheckpointInfo], session: Session) -> str:
    """Return a line about a message: its beginning, and the number of files that were edited since."""
    later = set(list(session.conversation.checkpoints)[point.checkpoints :])
    files = {path for info in edits if info.checkpoint_id in later for path in info.files}
    return f"{_short(point)}  ({show_count(len(files), 'file')} edited since)" if files else _short(point)


def _short(point: RewindPoint) -> str:
    return with_ellipsis(visible_line(" ".join(point.text.split())), LONGEST_MESSAGE)


async def _complete(context: CompletionContext, args: str) -> Sequence[ArgumentCompletion]:
    session = await context.session()
    number, blank, part = args.partition(" ")
    if blank:
        return [ArgumentCompletion(f"{number} {name}") for name in PARTS if name.startswith(part)]
    edits = await _edits(session, context.resources.checkpoints)
    return [
        ArgumentCompletion(str(point.number), _about(point, edits, session))
        for point in reversed(session.conversation.rewind_points.points)
        if str(point.number).startswith(number)
    ]


COMMAND = CommandNode(
    "rewind",
    "Go back to before one of your messages: conversation and files, or one of both alone",
    rewind,
    (
        argument("message", "The number of the message, as listed"),
        argument("part", f"{BOTH} (the default), {CONVERSATION} or {FILES}"),
    ),
    complete=_complete,
)
