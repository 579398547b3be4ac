"""/effort: shows how much the model thinks before it answers, or chooses it for the rest of the session."""

from collections.abc import Sequence

from isthmus.agent.commands.builtin.switching import agreed_note
from isthmus.agent.commands.port.base import ArgumentCompletion, CommandNode, CompletionContext, argument
from isthmus.agent.commands.port.context import CommandContext, CommandError
from isthmus.agent.context.switch_price import effort_price
from isthmus.internal_events import EffortChosen
from isthmus.models.port.base import DEFAULT_EFFORT, EFFORTS, ChatModel, Effort, ModelError


async def effort(context: CommandContext) -> None:
    """Show the effort; with a name, switch to it."""
    name = context.args.strip().lower()
    model = await context.resources.open_model(context.session.choices.model)
    names = _names(model)
    if not name:
        shown = _shown(context, model)
        await context.say(f"{shown} /effort NAME changes it: {', '.join(names)}." if len(names) > 1 else shown)
        return
    if name not in names:
        if len(names) == 1 and name in EFFORTS:
            raise CommandError(f"{model.name} has no levels of thinking. /model NAME switches to another model.")
        unknown = f"{model.name} has no effort {name}" if name in EFFORTS else f"Unknown effort {name[:100]}"
        raise CommandError(f"{unknown}; expected one of {', '.join(names)}.")
    before, after = context.session.choices.effort, None if name == DEFAULT_EFFORT else name
    price = effort_price(context.session, model, before, after, context.options.effort)
    present = f"the effort {before or DEFAULT_EFFORT}"
    note = await agreed_note(context, price, f"the effort {name}", present, {"effort": name})
    await context.turn.emit(EffortChosen(after))
    await context.say(f"This session continues with the effort {name}.{note}")


def _names(model: ChatModel) -> Sequence[str]:
    """Return the efforts to choose from for a model."""
    return (*(level.value for level in model.capabilities.efforts), DEFAULT_EFFORT)


def _shown(context: CommandContext, model: ChatModel) -> str:
    """Return a sentence with the effort in force, and what is sent for it if that is another one."""
    options = context.options.effort
    chosen = context.session.choices.effort or (options.value if options is not None else DEFAULT_EFFORT)
    able = model.capabilities
    if not able.efforts:
        return f"{model.name} has no levels of thinking to choose from."
    if chosen == DEFAULT_EFFORT:
        return f"Effort: default ({able.default_effort or 'its provider decides'})."
    sent = able.nearest_effort(Effort(chosen))
    note = "" if sent is None or sent.value == chosen else f" ({model.name} has no such level, and gets {sent.value})"
    return f"Effort: {chosen}{note}."


async def _complete(context: CompletionContext, args: str) -> Sequence[ArgumentCompletion]:
    try:
        model = await context.resources.open_model((await context.session()).choices.model)
    except ModelError:
        return ()
    return [ArgumentCompletion(name) for name in _names(model) if name.startswith(args)]


COMMAND = CommandNode(
    "effort",
    "Show how much the model thinks before it answers, or choose it for this session",
    effort,
    (argument("name", f"One of the model's levels: {', '.join(EFFORTS)}"),),
    complete=_complete,
    needs_folder=False,
)
