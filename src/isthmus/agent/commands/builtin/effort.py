"""/effort: shows how much the model thinks before it answers, or chooses it for the rest of the session."""

from collections.abc import Sequence

from isthmus.agent.commands.port.base import ArgumentCompletion, CommandNode, CompletionContext, argument
from isthmus.agent.commands.port.context import CommandContext, CommandError
from isthmus.internal_events import EffortChosen
from isthmus.models.port.base import DEFAULT_EFFORT, EFFORTS


async def effort(context: CommandContext) -> None:
    """Show the effort; with a name, switch to it."""
    name = context.args.strip().lower()
    own = context.options.effort.value if context.options.effort is not None else DEFAULT_EFFORT
    if not name:
        chosen = context.session.effort or own
        await context.say(f"Effort: {chosen}. /effort NAME changes it: {', '.join(EFFORTS)}.")
        return
    if name not in EFFORTS:
        raise CommandError(f"Unknown effort {name[:100]}; expected one of {', '.join(EFFORTS)}.")
    await context.turn.emit(EffortChosen(None if name == DEFAULT_EFFORT else name))
    await context.say(f"This session continues with the effort {name}.")


async def _complete(context: CompletionContext, args: str) -> Sequence[ArgumentCompletion]:
    return [ArgumentCompletion(name) for name in EFFORTS if name.startswith(args)]


COMMAND = CommandNode(
    "effort",
    "Show how much the model thinks before it answers, or choose it for this session",
    effort,
    (argument("name", f"One of {', '.join(EFFORTS)}"),),
    complete=_complete,
    needs_folder=False,
)
