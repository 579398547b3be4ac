"""Earlier sessions on the screen: their list, the end of the one that goes on, the last answer for the clipboard."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from isthmus.client import AgentClient
from isthmus.errors import IsthmusError
from isthmus.fronts.conversations import Conversation, list_sessions
from isthmus.fronts.task_stream import TaskStream, past_deliveries
from isthmus.record import record
from isthmus.terminal.interactive.past_items import (
    RESUMED_MESSAGES,
    LeftOut,
    PastItem,
    PastText,
    count_texts,
    end_of,
    past_items,
)
from isthmus.terminal.interactive.session_list import session_lines
from isthmus.text.units import show_count

if TYPE_CHECKING:
    from isthmus.terminal.screen.render import TaskRenderer
    from isthmus.terminal.screen.screen import Screen

RESUMED_LINES = 40
"""Maximum number of lines of each of them."""
BESIDE = 7
"""Cells of a line that a numbered menu takes beside the session: two before it, the number, the last one."""
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
        rows = session_lines(sessions, time.time(), self.screen.width - BESIDE)
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
        """Show the last messages and calls of a session's ended tasks. Raises the errors of ``AgentClient.get``."""
        items: list[PastItem] = []
        for task in reversed(session.tasks):
            if count_texts(items) >= RESUMED_MESSAGES:
                break
            if task.state.is_terminal:
                items = [*await self._items(task.task_id), *items]
        self._show(items)

    async def show_begun(self, stream: TaskStream) -> None:
        """Show the same of a task that goes on: what was before the events of its stream."""
        self._show(await self._items(stream.task_id, stream.view.seq))

    def _show(self, items: Sequence[PastItem]) -> None:
        for item in end_of(items):
            match item:
                case PastText(role, text):
                    self._show_message(role, text)
                case LeftOut(count):
                    self.renderer.left_out(show_count(count, "call"))
                case _:
                    self.renderer.past_call(item)

    async def _items(self, task_id: str, until: int | None = None) -> Sequence[PastItem]:
        """Return what a task showed until an event; its messages alone from an agent that does not repeat events."""
        with suppress(IsthmusError):
            if items := past_items(await past_deliveries(self.agent, task_id, until)):
                return items
        history = (await self.agent.get(task_id, RESUMED_MESSAGES)).history
        return [PastText(message.role, message.text) for message in history]

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
