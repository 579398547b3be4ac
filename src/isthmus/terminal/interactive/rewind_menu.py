"""The menus of ``/rewind``: first the user's messages, the last one first, then what goes back."""

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Protocol

from isthmus.record import record
from isthmus.slash_commands.tree import Completion
from isthmus.terminal.interactive.command_list import VALUES_SECONDS, CommandList
from isthmus.text.visible import visible_line

if TYPE_CHECKING:
    from isthmus.terminal.screen.screen import Screen

COMMAND = "/rewind"
MESSAGE_PROMPT = "go back to before (a number, or Enter for none): "
PART_LINES = (
    "1  Conversation and files",
    "2  Conversation alone; the files stay as they are",
    "3  Files alone; the conversation goes on",
)
PART_PROMPT = "what goes back (a number, or Enter for none): "
PARTS = ("both", "conversation", "files")
"""Words for the command, in the order of the lines."""
OTHER_ROWS = 4
"""Rows of the terminal that a list leaves free."""
PROMPT_INDENT = 3


class AskLine(Protocol):
    """Returns a line that the user types below ``lines``, or the number of one of the first ``choices``; or nothing."""

    def __call__(self, lines: Sequence[str], prompt: str, choices: int, /) -> Awaitable[str]:
        """Ask."""
        ...


@record
class RewindMenu:
    """The menus, of which the messages come from the agent, as completions of the command."""

    commands: CommandList
    screen: "Screen"
    ask_line: AskLine

    async def line(self) -> str | None:
        """Return the line to run; None if the user has chosen nothing, and the command alone without messages."""
        messages = (await self.commands.ask(f"{COMMAND} ", VALUES_SECONDS))[: max(1, self.screen.height - OTHER_ROWS)]
        if not messages:
            return COMMAND
        lines = [self.screen.fitted(line, PROMPT_INDENT) for line in message_lines(messages)]
        message = chosen(await self.ask_line(lines, MESSAGE_PROMPT, len(lines)), len(messages))
        if message is None:
            return None
        part = chosen(await self.ask_line(PART_LINES, PART_PROMPT, len(PART_LINES)), len(PARTS))
        return None if part is None else f"{messages[message].line} {PARTS[part]}"


def message_lines(messages: Sequence[Completion]) -> list[str]:
    """Return a numbered line for each message."""
    return [f"{number:>2}  {visible_line(item.description)}" for number, item in enumerate(messages, 1)]


def chosen(typed: str, count: int) -> int | None:
    """Return the place, from 0, of the choice whose number was typed; None if there is none."""
    typed = typed.strip()
    return int(typed) - 1 if typed.isdecimal() and len(typed) < 4 and 1 <= int(typed) <= count else None
