"""The approval mode of a conversation: chosen by /mode and Shift+Tab, checked by the agent, sent with the next message.

The agent's settings and the server's maximum decide which modes are allowed; nothing is decided here.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from isthmus.client import AgentClient, CommandScope, SessionStatusProvider
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError

SETTING = "approval_mode"
"""Key of the mode in AgentSettings."""
MODES = {
    "default": "asks before edits and commands",
    "auto_edit": "asks before commands",
    "plan": "only reads",
    "yolo": "never asks",
}
CYCLE = ("default", "auto_edit", "plan")
"""Modes of Shift+Tab; a key that is pressed by mistake must not choose yolo."""


FIND_SECONDS = 5.0
"""Maximum time to find out the mode of a session."""


@dataclass(slots=True)
class ConversationMode:
    """The mode of a conversation; ``scope`` returns the scope of its session, and ``say`` shows a line to the user.

    ``started_in`` is the mode of the program's options: a resumed session goes on in it. ``name`` is the present mode,
    None if it is not known. ``chosen`` is the mode that messages state; None until there is a reason to.
    """

    agent: AgentClient
    scope: Callable[[], CommandScope]
    say: Callable[[str], None]
    started_in: str | None = None
    name: str | None = None
    chosen: str | None = None
    is_shell: bool = False
    """Whether what is typed at the prompt is a shell command."""
    _choosing: "asyncio.Task[None] | None" = None

    @property
    def settings(self) -> JsonObject:
        """AgentSettings that state the mode; empty until one was chosen."""
        return {SETTING: self.chosen} if self.chosen is not None else {}

    @property
    def mark(self) -> str:
        """Text before the prompt; empty for the default mode."""
        if self.is_shell:
            return "shell "
        return "" if self.name in (None, "default") else f"{self.name} "

    async def find(self) -> None:
        """Find the mode in force, if the agent tells it."""
        if not isinstance(self.agent, SessionStatusProvider):
            return
        with suppress(IsthmusError, TimeoutError):
            async with asyncio.timeout(FIND_SECONDS):
                self.name = (await self.agent.session_status(self.scope())).approval_mode or self.name
        if self.started_in is not None and self.name != self.started_in:
            # The session's last mode was chosen in another run; here the user has started the program in this one.
            self.name = self.chosen = self.started_in

    async def choose(self, name: str) -> bool:
        """Choose a mode for the messages from now on, and say so; return False if that is not possible."""
        if name not in MODES:
            self.say(f"Unknown mode {name}; expected one of {', '.join(MODES)}.")
            return False
        if isinstance(self.agent, SessionStatusProvider):
            scope = self.scope()
            stated = CommandScope(scope.task_id, scope.context_id, {**(scope.settings or {}), SETTING: name})
            try:
                async with asyncio.timeout(FIND_SECONDS):
                    await self.agent.session_status(stated)  # refuses a mode that is not allowed
            except (IsthmusError, TimeoutError) as error:
                self.say(f"The mode stays {self.name or 'as it is'}: {error}")
                return False
        self.name = self.chosen = name
        self.say(f"Approval mode from the next message on: {name}, which {MODES[name]}.")
        return True

    async def next(self) -> None:
        """Choose the mode after the present one."""
        at = CYCLE.index(self.name) if self.name in CYCLE else -1
        await self.choose(CYCLE[(at + 1) % len(CYCLE)])

    def next_soon(self) -> None:
        """Choose the next mode without waiting, unless that is being done."""
        if self._choosing is None or self._choosing.done():
            self._choosing = asyncio.ensure_future(self.next())

    async def aclose(self) -> None:
        """Stop choosing."""
        if self._choosing is not None:
            self._choosing.cancel()
            await asyncio.gather(self._choosing, return_exceptions=True)

    def lines(self) -> tuple[str, ...]:
        """Return the modes, with a sign at the present one."""
        return tuple(f"{'*' if name == self.name else ' '} {name:<10} {what}" for name, what in MODES.items())
