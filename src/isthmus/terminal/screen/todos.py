"""Lines for the list of things to do: first the whole list, then its changes, since the scrollback keeps the rest."""

from collections.abc import Sequence

from rich.text import Text

from isthmus.terminal.screen.blocks import INDENT
from isthmus.terminal.screen.screen import Glyphs
from isthmus.text.visible import visible_line
from isthmus.todo_list import Todo, TodoStatus


def todo_lines(todos: Sequence[Todo], before: Sequence[Todo], width: int, glyphs: Glyphs) -> list[Text]:
    """Return a line for each entry that is not in the list before."""
    lines: list[Text] = []
    for todo in todos:
        if todo in before:
            continue
        sign, style = _look(todo.status, glyphs)
        line = Text(INDENT).append(f"{sign} ", style)
        line.append(visible_line(todo.description), "strong" if todo.status is TodoStatus.IN_PROGRESS else "quiet")
        line.truncate(width, overflow="ellipsis")
        lines.append(line)
    return lines


def _look(status: TodoStatus, glyphs: Glyphs) -> tuple[str, str]:
    match status:
        case TodoStatus.PENDING:
            return glyphs.dot, "quiet"
        case TodoStatus.IN_PROGRESS:
            return glyphs.prompt, "prompt"
        case TodoStatus.COMPLETED:
            return glyphs.done, "good"
        case TodoStatus.CANCELLED:
            return glyphs.cancelled, "quiet"
        case TodoStatus.BLOCKED:
            return glyphs.waiting, "notice"
