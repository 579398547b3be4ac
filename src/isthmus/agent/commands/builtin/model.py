"""/model: shows the model, or chooses another one for the rest of the session, after a question if that is dear."""

from collections.abc import Sequence

from isthmus.agent.commands.builtin.switching import agreed_note
from isthmus.agent.commands.port.base import ArgumentCompletion, CommandNode, CompletionContext, argument
from isthmus.agent.commands.port.context import CommandContext
from isthmus.agent.context.switch_price import switch_price
from isthmus.internal_events import ModelChosen


async def model(context: CommandContext) -> None:
    """Show the model; with a name, switch to that model."""
    name = context.args.strip()
    chosen = await context.resources.open_model(name or context.session.choices.model)
    end = chosen.capabilities.end
    note = f" {end}" if end else ""
    if not name:
        await context.say(f"Model: {chosen.name} ({chosen.provider}).{note} /model NAME switches to another one.")
        return
    present = await context.resources.open_model(context.session.choices.model)
    price = switch_price(context.session, present, chosen)
    note += await agreed_note(context, price, chosen.name, present.name, {"model": name})
    await context.turn.emit(ModelChosen(name))
    await context.say(f"This session continues with {chosen.name} ({chosen.provider}).{note}")


async def _complete(context: CompletionContext, args: str) -> Sequence[ArgumentCompletion]:
    resources = context.resources
    if context.scope.user or resources.model_names is None:
        return ()  # What the keys of a server's owner reach is not told to its users.
    return [ArgumentCompletion(name) for name in await resources.model_names() if args.lower() in name.lower()]


COMMAND = CommandNode(
    "model",
    "Show the model, or choose another one for this session",
    model,
    (argument("name", "As in --model: PROVIDER:NAME, or a bare name"),),
    complete=_complete,
    needs_folder=False,
)
