"""The declaration of a slash command: its name, its effect, its arguments and its subcommands."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from isthmus.agent.commands.context import CommandContext
from isthmus.agent.resources import AgentResources
from isthmus.development_tool import SlashCommand, SlashCommandArgument
from isthmus.slash_commands.tree import SUBCOMMAND
from isthmus.tools.tool_set import ToolScope

Body: TypeAlias = Callable[[CommandContext], Awaitable[None]]
"""Body of a command. It raises CommandError to fail, and CommandRefusedError if the user refused."""
CompleteArguments: TypeAlias = Callable[[AgentResources, ToolScope, str], Awaitable[Sequence[str]]]
"""Returns completions of the text after a command's name, each as the whole text."""


@dataclass(frozen=True, slots=True)
class CommandNode:
    """A command with its subcommands; a command without a ``body`` only groups them."""

    name: str
    description: str
    body: Body | None = None
    arguments: tuple[SlashCommandArgument, ...] = ()
    sub_commands: "tuple[CommandNode, ...]" = ()
    complete: CompleteArguments | None = None

    def declare(self) -> SlashCommand:
        """Return the command as clients see it."""
        arguments = self.arguments
        if self.body is None:
            names = ", ".join(node.name for node in self.sub_commands)
            arguments = (SlashCommandArgument(SUBCOMMAND, f"one of {names}", is_required=True),)
        return SlashCommand(self.name, self.description, arguments, tuple(node.declare() for node in self.sub_commands))


def argument(name: str, description: str, *, is_required: bool = False) -> SlashCommandArgument:
    """Return an argument of a command."""
    return SlashCommandArgument(name, description, is_required)
