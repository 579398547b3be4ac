"""The work of a subagent, as its call shows it: its latest calls while it runs, the files that it has changed. Pure."""

from isthmus.development_tool import ChangedLines, FileDiff, ToolCallStatus
from isthmus.task_view import TaskView
from isthmus.text.diff import line_opcodes, split_lines
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


def changed_files(view: TaskView) -> tuple[ChangedLines, ...]:
    """Return the files that the calls of a subagent have changed, each once, with the lines of all its edits."""
    found: dict[str, ChangedLines] = {}
    for item in view.calls.values():
        output = item.call.output
        if item.call.status is ToolCallStatus.SUCCEEDED and output is not None and output.diff is not None:
            lines = _changed_lines(output.diff)
            before = found.get(lines.file_path, ChangedLines(lines.file_path))
            found[lines.file_path] = ChangedLines(
                lines.file_path, before.added + lines.added, before.removed + lines.removed
            )
    return tuple(found.values())


def _changed_lines(diff: FileDiff) -> ChangedLines:
    opcodes = line_opcodes(split_lines(diff.old_content or ""), split_lines(diff.new_content))
    changes = [opcode for opcode in opcodes if opcode[0] != "equal"]
    added = sum(new_end - new_start for _, _, _, new_start, new_end in changes)
    removed = sum(end - start for _, start, end, _, _ in changes)
    return ChangedLines(diff.file_path, added, removed)
