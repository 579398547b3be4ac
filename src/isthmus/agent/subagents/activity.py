"""The work of a subagent in a few lines, as its call shows them while it runs. Pure."""

from isthmus.task_view import TaskView
from isthmus.text.visible import single_line, with_ellipsis

SHOWN_CALLS = 5
"""Maximum number of the latest calls that are shown."""
CHARACTERS = 160
"""Maximum length of a line in characters."""


def activity(view: TaskView) -> str:
    """Return the latest calls of a subagent, a line each, and how many came before."""
    calls = list(view.calls.values())
    lines = [
        with_ellipsis(single_line(f"{item.call.tool_name}: {item.call.description or ''}".rstrip(": ")), CHARACTERS)
        for item in calls[-SHOWN_CALLS:]
    ]
    earlier = len(calls) - len(lines)
    return "\n".join([*([f"({earlier} calls before)"] if earlier else []), *lines])
