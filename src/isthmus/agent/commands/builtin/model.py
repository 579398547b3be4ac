"""/model: shows the model, or chooses another one for the rest of the session, after a question if that is dear."""

from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.agent.commands.port.base import ArgumentCompletion, CommandNode, CompletionContext, argument
from isthmus.agent.commands.port.context import CommandContext, CommandRefusedError, ToolInvocation, error_of
from isthmus.agent.context.switch_price import SwitchPrice, switch_price
from isthmus.development_tool import ConfirmationDetails, GenericDetails, ToolCallStatus, ToolOutput
from isthmus.internal_events import ModelChosen
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded


class SwitchModel:
    """The question before a switch that makes the next request dearer."""

    name = "switch_model"
    description = "Continues the session with another model."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {"model": {"type": "string"}}}
    kind = ToolKind.OTHER

    def __init__(self, price: SwitchPrice) -> None:
        self._price = price

    def describe(self, arguments: Arguments) -> str:
        """Return the description of the call, with the model."""
        return f"Switch to {arguments['model']}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the price."""
        return GenericDetails(f"{self._price.text} Switch to {self._price.chosen}?")

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Do nothing: the command switches."""
        text = f"The session may continue with {self._price.chosen}."
        return ToolSucceeded(ToolOutput(text=text), text)


async def model(context: CommandContext) -> None:
    """Show the model; with a name, switch to that model."""
    name = context.args.strip()
    chosen = await context.resources.open_model(name or context.session.choices.model)
    end = chosen.capabilities.end
    note = f" {end}" if end else ""
    if not name:
        await context.say(f"Model: {chosen.name} ({chosen.provider}).{note} /model NAME switches to another one.")
        return
    price = switch_price(context.session, await context.resources.open_model(context.session.choices.model), chosen)
    if price is not None:
        if context.has_called or (price.is_dear and context.options.policy.may_ask and context.known_scope is not None):
            await _ask(context, name, price)
        else:
            note += f" {price.text}"
    await context.turn.emit(ModelChosen(name))
    await context.say(f"This session continues with {chosen.name} ({chosen.provider}).{note}")


async def _ask(context: CommandContext, name: str, price: SwitchPrice) -> None:
    """Ask the user whether to switch; raise CommandRefusedError if not."""
    (call,) = await context.call(ToolInvocation(SwitchModel(price), {"model": name}))
    if call.status is ToolCallStatus.CANCELLED:
        await context.say(f"This session stays with {price.present}.")
        raise CommandRefusedError
    if call.status is not ToolCallStatus.SUCCEEDED:
        raise error_of(call, f"This session stays with {price.present}.", "not_permitted")


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
