"""The list of sessions as the terminal shows it: one line each, with an id that is long enough to be unique."""

from collections.abc import Sequence

from isthmus.fronts.conversations import Conversation
from isthmus.fronts.session_names import SHORT_ID
from isthmus.text.visible import visible_line, with_ellipsis


def session_lines(sessions: Sequence[Conversation], now: float, width: int) -> list[str]:
    """Return a table of short id, age of the last change, state and title, which is cut to ``width`` characters."""
    rows = [(_short(session, sessions), _when(now - session.updated_at), session.state_text) for session in sessions]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    lines: list[str] = []
    for session, row in zip(sessions, rows, strict=True):
        columns = "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True))
        room = max(4, width - len(columns) - 2)
        lines.append(f"{columns}  {with_ellipsis(visible_line(session.title), room)}")
    return lines


def _short(session: Conversation, sessions: Sequence[Conversation]) -> str:
    """Return a prefix of the id that is long enough to be unique."""
    name = visible_line(session.context_id)
    length = SHORT_ID
    others = [other.context_id for other in sessions if other is not session]
    while length < len(name) and any(other.startswith(name[:length]) for other in others):
        length += 4
    return name[:length]


def _when(age: float) -> str:
    """Return an age in seconds as a rough text: ``5 min ago``."""
    for limit, unit, size in ((60, "s", 1), (3600, "min", 60), (86400, "h", 3600)):
        if age < limit:
            return f"{max(0, int(age // size))} {unit} ago"
    return f"{int(age // 86400)} d ago"
