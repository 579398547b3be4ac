"""The slash commands of a conversation: the terminal's own, and the agent's as it lists them.

The agent's are asked for when the conversation starts (spec 2, section 3.3), beside everything else: until they are
there, and where an agent has none, only the terminal's own are known. Deliberately not here: running them.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from isthmus.client import AgentClient, CommandScope, LineCompleter
from isthmus.development_tool import SlashCommand
from isthmus.errors import IsthmusError
from isthmus.slash_commands.tree import CommandLine, Completion, all_commands, completions, near, read_line

OWN = (
    ("/help", "this list; /help NAME says more of one of the agent's"),
    ("/clear", "a new session, on an empty screen"),
    ("/sessions", "the sessions of this folder; resume one with --resume ID"),
    ("/quit", "leave; also exit, Ctrl-D, or Ctrl-C twice"),
)
KEYS = (
    ("Alt-Enter", "another line; also Enter after a backslash"),
    ("Ctrl-C", "cancels the turn that is running"),
)
LOAD_SECONDS = 10.0
"""How long a command that was typed waits for the list."""


@dataclass(slots=True)
class CommandList:
    """The commands of one agent. ``problem`` says why they are not known."""

    agent: AgentClient
    tree: Sequence[SlashCommand] = ()
    problem: str | None = None
    ask_seconds: float = 1.0
    """How long a user who pressed Tab waits for the agent."""
    _loading: "asyncio.Task[None] | None" = field(default=None)
    _scope: CommandScope = field(default_factory=CommandScope)

    def load(self, scope: CommandScope) -> None:
        """Ask for the agent's commands, without waiting for them."""
        self._scope = scope
        if self._loading is None or self._loading.done():
            self._loading = asyncio.ensure_future(self._load(scope))

    async def ready(self) -> None:
        """The list is there, or does not come."""
        if self._loading is not None:
            await asyncio.wait({self._loading}, timeout=LOAD_SECONDS)

    async def aclose(self) -> None:
        """Stop asking."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    def read(self, text: str) -> CommandLine | None:
        """Return the agent's command in what was typed; None when it has none of that name."""
        return read_line(text, self.tree)

    def complete(self, line: str) -> Sequence[Completion]:
        """How a line that begins with ``/`` may go on."""
        own = (SlashCommand(name.removeprefix("/"), what) for name, what in OWN)
        names = {command.name for command in self.tree}
        return completions(line, [*(command for command in own if command.name not in names), *self.tree])

    async def ask(self, line: str) -> Sequence[Completion]:
        """How a line may go on as the agent knows it, e.g. an argument's value; nothing when that takes too long."""
        if not isinstance(self.agent, LineCompleter):
            return ()
        try:
            async with asyncio.timeout(self.ask_seconds):
                return await self.agent.complete(self._scope, line)
        except (IsthmusError, TimeoutError):
            return ()

    def likely(self, text: str) -> Sequence[str]:
        """Commands whose names are near what was typed."""
        return near(text.split()[:2], [*(SlashCommand(name[1:], what) for name, what in OWN), *self.tree])

    def help_lines(self) -> Sequence[str]:
        """What can be typed: here, and for the agent."""
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
