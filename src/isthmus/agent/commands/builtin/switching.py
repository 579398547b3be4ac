"""The question before a switch of the model or its effort that makes the next request much dearer."""

from collections.abc import Mapping
from typing import Any

from isthmus.agent.commands.port.context import CommandContext, CommandRefusedError, ToolInvocation, error_of
from isthmus.agent.context.switch_price import SwitchPrice
from isthmus.development_tool import ConfirmationDetails, GenericDetails, ToolCallStatus, ToolOutput
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded


class SwitchModel:
    """The question before a switch; ``target`` is the model or the effort to switch to."""

    name = "switch_model"
    description = "Continues the session with another model or effort."
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"model": {"type": "string"}, "effort": {"type": "string"}},
    }
    kind = ToolKind.OTHER

    def __init__(self, price: SwitchPrice, target: str) -> None:
        self._price = price
        self._target = target

    def describe(self, arguments: Arguments) -> str:
        """Return the description of the call, with the model or the effort."""
        return f"Switch to {next(iter(arguments.values()))}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the price."""
        return GenericDetails(f"{self._price.text} Switch to {self._target}?")

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Do nothing: the command switches."""
        text = f"The session may continue with {self._target}."
        return ToolSucceeded(ToolOutput(text=text), text)


async def agreed_note(
    context: CommandContext, price: SwitchPrice | None, target: str, present: str, arguments: Mapping[str, str]
) -> str:
    """Return what is to be said of the price of a switch, after the user has agreed where it is dear.

    Raises:
        CommandRefusedError: the user refused; what the session stays with, ``present``, was said.
        CommandError: the switch is not permitted.
    """
    if price is None:
        return ""
    may_ask = price.is_dear and context.options.policy.may_ask and context.known_scope is not None
    if not (context.has_called or may_ask):
        return f" {price.text}"
    (call,) = await context.call(ToolInvocation(SwitchModel(price, target), arguments))
    if call.status is ToolCallStatus.CANCELLED:
        await context.say(f"This session stays with {present}.")
        raise CommandRefusedError
    if call.status is not ToolCallStatus.SUCCEEDED:
        raise error_of(call, f"This session stays with {present}.", "not_permitted")
    return ""
