"""Earlier sessions on the screen: their list, the end of the one that goes on, the last answer for the clipboard."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from isthmus.client import AgentClient
from isthmus.errors import IsthmusError
from isthmus.fronts.conversations import Conversation, list_sessions
from isthmus.record import record
from isthmus.terminal.interactive.session_list import session_lines
from isthmus.text.units import show_count

if TYPE_CHECKING:
    from isthmus.terminal.screen.render import TaskRenderer
    from isthmus.terminal.screen.screen import Screen

RESUMED_MESSAGES = 6
"""Maximum number of messages that are shown again when a session is resumed."""
RESUMED_LINES = 40
"""Maximum number of lines of each of them."""
MAXIMUM_CHOICES = 20
"""Maximum number of sessions to choose from."""


@record
class PastSessions:
    """The sessions of ``workspace`` (an absolute path; None for all), shown by ``renderer``."""

    agent: AgentClient
    screen: "Screen"
    renderer: "TaskRenderer"
    workspace: str | None

    async def show_list(self) -> None:
        """Show a table of all sessions."""
        sessions = await self._sessions()
        if sessions:
            self.renderer.quiet(*session_lines(sessions, time.time(), self.screen.width))

    async def choices(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return numbered lines to choose from, and the contextId of each; both are empty if there is none."""
        sessions = (await self._sessions())[:MAXIMUM_CHOICES]
        rows = session_lines(sessions, time.time(), self.screen.width - 4)
        lines = [f"{number:>2}  {row}" for number, row in enumerate(rows, 1)]
        return lines, [session.context_id for session in sessions]

    async def _sessions(self) -> Sequence[Conversation]:
        try:
            sessions = await list_sessions(self.agent, self.workspace)
        except IsthmusError as error:
            self.renderer.error(str(error))
            return ()
        if not sessions:
            self.renderer.quiet("No sessions yet.")
        return sessions

    async def show_end(self, session: Conversation) -> None:
        """Show the last messages of a session. Raises the errors of ``AgentClient.get``."""
        messages = [
            message
            for task in session.tasks[-RESUMED_MESSAGES:]
            for message in (await self.agent.get(task.task_id, RESUMED_MESSAGES)).history
        ]
        for message in messages[-RESUMED_MESSAGES:]:
            self._show_message(message.role, message.text)

    def _show_message(self, role: str, text: str) -> None:
        lines = text.strip("\n").split("\n")
        hidden = len(lines) - RESUMED_LINES
        shown = "\n".join(lines[-RESUMED_LINES:])
        if not shown.strip():
            return
        if hidden > 0:
            self.renderer.quiet(f"{self.screen.glyphs.ellipsis} {show_count(hidden, 'line')} above")
        if role == "user":
            self.renderer.prompt(shown)
            return
        self.screen.separate()
        self.screen.write(shown)
        self.screen.end_text()

    async def copy_answer(self, task_id: str | None) -> None:
        """Put the agent's last message into the clipboard of the terminal."""
        try:
            task = None if task_id is None else await self.agent.get(task_id, RESUMED_MESSAGES)
        except IsthmusError as error:
            self.renderer.error(str(error))
            return
        text = next(
            (message.text for message in reversed(task.history if task is not None else ()) if message.role == "agent"),
            "",
        )
        if not text:
            self.renderer.quiet("There is no message of the agent to copy yet.")
            return
        self.screen.copy(text)
        self.renderer.quiet(
            f"Copied {show_count(len(text), 'character')}, if your terminal lets programs copy (OSC 52)."
        )
