"""The slash commands of a conversation: the terminal's own and those that the agent lists.

The agent's commands are requested in the background when the conversation starts (development-tool extension, section
3.3). Until they have come, and for an agent without any, only the terminal's own are known.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from isthmus.client import AgentClient, CommandScope, LineCompleter
from isthmus.development_tool import SlashCommand
from isthmus.errors import IsthmusError
from isthmus.slash_commands.tree import (
    SUBCOMMAND,
    CommandLine,
    Completion,
    all_commands,
    completions,
    near,
    read_line,
)
from isthmus.terminal.interactive.value_list import ValueList

OWN = (
    ("/help", "this list; /help NAME explains one of the agent's commands"),
    ("/clear", "a new session, on an empty screen"),
    ("/resume", "choose an earlier session of this folder and go on with it; also /resume ID"),
    ("/copy", "puts the agent's last message into the clipboard"),
    ("/plan", "the agent only plans; /plan TEXT also sends the text, and asks whether to carry the plan out"),
    ("/mode", "the approval modes; /mode NAME changes it: default, auto_edit, plan, yolo"),
    ("/theme", "the colours of this terminal; /theme NAME chooses them: auto, light, dark, none"),
    ("/settings", "the settings that are in force, and their files"),
    ("/editor", "your text editor, and the editor of this session"),
    ("/sessions", "the sessions of this folder; resume one with --resume ID"),
    ("/quit", "leave; also exit, Ctrl-D, or Ctrl-C twice"),
)
KEYS = (
    ("!COMMAND", "runs a shell command, whose output the agent sees with your next message; ! alone: shell mode"),
    ("@FILE", "puts a file, lines of it (@FILE:10-40) or a folder into the message"),
    ("Ctrl-V", "puts the image in the clipboard into the message; also Alt-V, and a pasted path of an image file"),
    ("Ctrl-R", "searches what you have typed before"),
    ("Ctrl-X Ctrl-E", "edits the message in your $EDITOR"),
    ("Alt-Enter", "another line; also Enter after a backslash"),
    ("Esc", "cancels the turn that is running; also Ctrl-C. What you type meanwhile is sent when it ends"),
    ("Esc Esc", "at an empty prompt: goes back to before one of your messages; also /rewind"),
    ("Tab", "while it works: sends what you have typed at once, for the work under way"),
    ("Shift-Tab", "the next approval mode: default, auto_edit, plan"),
)
VALUES_SECONDS = 8.0
"""Maximum time for values to choose from, which the agent may have to ask a provider for."""
LOAD_SECONDS = 10.0
"""Maximum time that a typed command waits for the list."""


@dataclass(slots=True)
class CommandList:
    """The commands of one agent. ``problem`` is the reason why they are not known."""

    agent: AgentClient
    tree: Sequence[SlashCommand] = ()
    problem: str | None = None
    ask_seconds: float = 1.0
    """Maximum time that a user who pressed Tab waits for the agent."""
    _loading: "asyncio.Task[None] | None" = field(default=None)
    _scope: CommandScope = field(default_factory=CommandScope)

    def load(self, scope: CommandScope) -> None:
        """Request the agent's commands without waiting for them."""
        self._scope = scope
        if self._loading is None or self._loading.done():
            self._loading = asyncio.ensure_future(self._load(scope))

    async def ready(self) -> None:
        """Wait until the list has come, or LOAD_SECONDS have passed."""
        if self._loading is not None:
            await asyncio.wait({self._loading}, timeout=LOAD_SECONDS)

    async def aclose(self) -> None:
        """Cancel the request for the list."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    def read(self, text: str) -> CommandLine | None:
        """Return the agent's command in the typed text; None if it has no command of that name."""
        return read_line(text, self.tree)

    def complete(self, line: str) -> Sequence[Completion]:
        """Return completions of a line that begins with ``/``."""
        own = (SlashCommand(name.removeprefix("/"), what) for name, what in OWN)
        names = {command.name for command in self.tree}
        return completions(line, [*(command for command in own if command.name not in names), *self.tree])

    async def values(self, typed: str, line: CommandLine) -> ValueList | None:
        """Return the values of a command that was typed without its only argument; None if the agent tells none."""
        arguments = line.command.arguments if line.command is not None else ()
        if line.args or len(arguments) != 1 or arguments[0].name == SUBCOMMAND:
            return None
        beginning = f"{typed} "
        found = await self.ask(beginning, VALUES_SECONDS)
        values = [item for item in found if item.is_value and item.line.startswith(beginning)]
        return ValueList(typed, values, arguments[0].is_required) if values else None

    async def ask(self, line: str, seconds: float | None = None) -> Sequence[Completion]:
        """Return the agent's completions of a line, e.g. values of an argument; nothing if that takes too long."""
        if not isinstance(self.agent, LineCompleter):
            return ()
        try:
            async with asyncio.timeout(seconds if seconds is not None else self.ask_seconds):
                return await self.agent.complete(self._scope, line)
        except (IsthmusError, TimeoutError):
            return ()

    def likely(self, text: str) -> Sequence[str]:
        """Return commands whose names are similar to the typed text."""
        return near(text.split()[:2], [*(SlashCommand(name[1:], what) for name, what in OWN), *self.tree])

    def help_lines(self) -> Sequence[str]:
        """Return the lines of /help: the terminal's commands and keys, then the agent's commands."""
        theirs = list(self._theirs())
        widest = max(len(name) for name, _ in (*OWN, *KEYS, *theirs))
        lines = [f"{name:<{widest}}  {what}" for name, what in (*OWN, *KEYS)]
        if theirs:
            lines += ["", "The agent's:", *(f"{name:<{widest}}  {what}" for name, what in theirs)]
        elif self.problem is not None:
            lines += ["", f"The agent's commands are not known: {self.problem}"]
        return lines

    def _theirs(self) -> Iterator[tuple[str, str]]:
        own = {name for name, _ in OWN}
        for path, command in all_commands(self.tree):
            name = "/" + " ".join(path)
            if name not in own:
                yield name, " ".join(command.description.split())

    async def _load(self, scope: CommandScope) -> None:
        try:
            self.tree, self.problem = await self.agent.commands(scope), None
        except IsthmusError as error:
            self.problem = str(error)


def is_command(text: str) -> bool:
    """Return whether a text begins with ``/word`` rather than with a path."""
    word = text.split()[0]
    return word.startswith("/") and word[1:].replace("-", "").isalpha()
