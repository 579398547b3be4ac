"""The declaration of a slash command: its name, its effect, its arguments and its subcommands."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from isthmus.agent.commands.port.context import CommandContext
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.session import ReadSession
from isthmus.development_tool import SlashCommand, SlashCommandArgument
from isthmus.record import record
from isthmus.slash_commands.tree import SUBCOMMAND
from isthmus.tools.port.tool_set import ToolScope

Body: TypeAlias = Callable[[CommandContext], Awaitable[None]]
"""Body of a command. It raises CommandError to fail, and CommandRefusedError if the user refused."""


@record
class ArgumentCompletion:
    """A completion of the text after a command's name, as the whole text.

    ``is_value`` is whether it is a whole value of the command's only argument, which a user may choose from a list.
    """

    text: str
    description: str = ""
    is_value: bool = True


@record
class CompletionContext:
    """Conditions of a completion. ``session`` reads the session, with all its events, or begins an empty one."""

    resources: AgentResources
    scope: ToolScope
    session: ReadSession


CompleteArguments: TypeAlias = Callable[[CompletionContext, str], Awaitable[Sequence[ArgumentCompletion]]]
"""Returns completions of the text after a command's name, in the order in which a user wants to see them."""


@record
class CommandNode:
    """A command with its subcommands; a command without a ``body`` only groups them.

    A built-in command that does not need a folder can be executed before its session has one.
    """

    name: str
    description: str
    body: Body | None = None
    arguments: tuple[SlashCommandArgument, ...] = ()
    sub_commands: "tuple[CommandNode, ...]" = ()
    complete: CompleteArguments | None = None
    needs_folder: bool = True

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
