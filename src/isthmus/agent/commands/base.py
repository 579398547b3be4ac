"""What a slash command is made of: its declaration, what it works with, and the steps that it yields.

A command is an async generator of steps; the runner carries each one out, keeps it in the journal, and sends the
outcome back. After a crash, or when a person has answered, the generator is run again from its beginning: what it said
is not said twice, and calls that are settled give their outcome at once. So what comes before a call must not depend
on anything that changes, and effects belong into calls. Deliberately not here: how steps are carried out.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from isthmus.agent.approval import AskedEachTime
from isthmus.agent.memory import Memory
from isthmus.agent.options import AgentOptions
from isthmus.agent.resources import AgentResources
from isthmus.agent.session import Session
from isthmus.development_tool import SlashCommand, SlashCommandArgument, ToolCall
from isthmus.events import AgentEvent
from isthmus.media import Media
from isthmus.slash_commands import SUBCOMMAND
from isthmus.tools.base import Tool, ToolScope, ToolSet


@dataclass(frozen=True, slots=True)
class Say:
    """A text for the person. ``is_afresh``: said again when the command is run again, e.g. an address to open."""

    text: str
    is_afresh: bool = False


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool, and what it is called with."""

    tool: Tool
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Calls:
    """Tool calls; their outcome is the calls in their final states, in this order.

    The approval policy decides on them, unless the command itself is the person's leave (``is_permitted``), or somebody
    else wrote it: then ``asked_each_time`` says why the person is asked for each, whatever the policy allows.
    """

    uses: tuple[ToolUse, ...]
    is_permitted: bool = False
    asked_each_time: AskedEachTime | None = None


@dataclass(frozen=True, slots=True)
class AskModel:
    """The end of the command: the model goes on with this text, and what is no text, in the same task.

    ``requested_file`` is the file that the user asked for by the command.
    """

    text: str
    media: tuple[Media, ...] = ()
    requested_file: str = ""


@dataclass(frozen=True, slots=True)
class Keep:
    """An event of the session besides texts and calls."""

    event: AgentEvent


@dataclass(frozen=True, slots=True)
class Fail:
    """The end of the command: it failed. ``reason`` is a machine-readable word."""

    message: str
    reason: str = "command_failed"


@dataclass(frozen=True, slots=True)
class Refused:
    """The end of the command: the person did not want it to go on."""


Step: TypeAlias = Say | Calls | AskModel | Keep | Fail | Refused
Steps: TypeAlias = AsyncGenerator[Step, Sequence[ToolCall]]


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What a command works with. ``problems`` are custom commands that cannot be used, and why."""

    session: Session
    args: str
    resources: AgentResources
    options: AgentOptions
    memory: Memory
    tools: ToolSet
    scope: ToolScope
    tree: tuple[SlashCommand, ...]
    problems: tuple[str, ...] = ()

    @property
    def workspace(self) -> Path:
        """The folder of the session."""
        return self.scope.workspace

    @property
    def home(self) -> Path | None:
        """The folder of the person's own files, if they have one here."""
        return self.resources.home_of(self.session.user)

    @property
    def has_called(self) -> bool:
        """The command is run again: it made calls already."""
        return bool(self.session.calls)

    @property
    def context_files(self) -> tuple[str, ...]:
        """The names of the files that instruct the agent; empty for the usual ones."""
        settings = self.session.settings
        return (settings.context_files if settings is not None else ()) or self.options.context_files


Body: TypeAlias = Callable[[CommandContext], Steps]
CompleteArguments: TypeAlias = Callable[[AgentResources, ToolScope, str], Awaitable[Sequence[str]]]
"""How the text behind a command's name may go on: whole texts."""


@dataclass(frozen=True, slots=True)
class CommandNode:
    """A command with those below it; one without a ``body`` only holds others."""

    name: str
    description: str
    body: Body | None = None
    arguments: tuple[SlashCommandArgument, ...] = ()
    sub_commands: "tuple[CommandNode, ...]" = ()
    complete: CompleteArguments | None = None

    def declared(self) -> SlashCommand:
        """The command as clients see it."""
        arguments = self.arguments
        if self.body is None:
            names = ", ".join(node.name for node in self.sub_commands)
            arguments = (SlashCommandArgument(SUBCOMMAND, f"one of {names}", is_required=True),)
        return SlashCommand(
            self.name, self.description, arguments, tuple(node.declared() for node in self.sub_commands)
        )


def argument(name: str, description: str, *, is_required: bool = False) -> SlashCommandArgument:
    """An argument of a command."""
    return SlashCommandArgument(name, description, is_required)
