"""Lines for the screen: tool calls, diffs, outputs, questions. Every string in them is untrusted.

Functions that return rich ``Text`` lines; they print nothing and have no state.
"""

import json

from rich.cells import cell_len
from rich.text import Text

from isthmus.development_tool import ExecuteDetails, FileDiff, GenericDetails, McpDetails, ToolCall, ToolCallStatus
from isthmus.encoding.codec import JsonObject
from isthmus.forms.asked_question import filled_answer, question_in
from isthmus.questions import ELICITATION
from isthmus.task_view import CallView
from isthmus.terminal.diff import DiffLine, LineKind, changed_lines, diff_lines
from isthmus.terminal.questions.question_facts import facts_of, shown_name
from isthmus.terminal.questions.questions import CallQuestion
from isthmus.terminal.questions.typed_ahead import TypedAhead
from isthmus.terminal.screen.screen import Glyphs
from isthmus.terminal.screen.wrapping import word_rows, wrapped
from isthmus.text.command_outcome import says_failure
from isthmus.text.units import show_count
from isthmus.text.visible import output_lines, visible, visible_line

INDENT = "    "
TYPED_LINES = 6
"""Maximum number of lines of what the user types while the agent works."""
TAIL_LINES = 8
"""Maximum number of lines of a program's output that are shown while it runs and stay in the scrollback."""
QUESTION_DIFF_LINES = 400
RESULT_DIFF_LINES = 60
ERROR_LINES = 12
ARGUMENT_LINES = 30
NARROWEST_DESCRIPTION = 30
"""Minimum width in cells for the descriptions of choices beside their names; in less they are below."""
CODE_HANGING = 4
"""Number of cells by which the rows of a long line of code after its first one are further to the right."""
LONGEST_LINE = 2000
"""Maximum number of characters of a line of a file that are shown."""


def call_lines(view: CallView, glyphs: Glyphs, width: int, *, was_asked: bool = False) -> list[Text]:
    """Return one line: a sign for the status, the tool, a description, and the outcome.

    A shell command that does not fit follows in full, because its end matters as much as its beginning. If a question
    has already shown it (`was_asked`), a long one is cut.
    """
    call = view.call
    line = Text()
    match call.status:
        case ToolCallStatus.SUCCEEDED if not _has_failed(call):
            line.append(glyphs.done, "good")
        case ToolCallStatus.SUCCEEDED:
            line.append(glyphs.failed, "bad")
        case ToolCallStatus.FAILED:
            line.append(glyphs.failed, "bad")
        case ToolCallStatus.CANCELLED:
            line.append(glyphs.cancelled, "quiet")
        case ToolCallStatus.STATUS_UNSPECIFIED | ToolCallStatus.PENDING | ToolCallStatus.EXECUTING:
            line.append(glyphs.dot, "quiet")
    line.append(" ").append(shown_name(call), "tool")
    ending = _ending(view, glyphs)
    room = width - line.cell_len - ending.cell_len - 1
    command = _command(call, room - 2, width, glyphs, TAIL_LINES if was_asked else None)
    if (what := describe(call)) and not command:
        description = Text("  " + what, "quiet")
        description.truncate(max(0, room), overflow="ellipsis")
        line.append_text(description)
    line.append_text(ending)
    line.truncate(width, overflow="ellipsis")
    return [line, *command]


def _command(call: ToolCall, room: int, width: int, glyphs: Glyphs, maximum: int | None) -> list[Text]:
    """Return at most `maximum` lines of a shell command that does not fit in one line of `room` cells, else none."""
    if not is_command(call):
        return []
    lines = visible((call.description or "").strip().removeprefix(f"{call.tool_name} ")).split("\n")
    if len(lines) == 1 and cell_len(lines[0]) <= room:
        return []
    folded = [part for line in lines for part in _command_rows(line, width - len(INDENT) - 1)]
    shown = [Text(INDENT + part, "quiet") for part in folded[:maximum]]
    if hidden := len(folded) - len(shown):
        shown.append(
            Text(f"{INDENT}{glyphs.ellipsis} {show_count(hidden, 'more line')}, shown in the question", "quiet")
        )
    return shown


def _ending(view: CallView, glyphs: Glyphs) -> Text:
    call, ending = view.call, Text()
    if call.status is ToolCallStatus.SUCCEEDED and call.output is not None and call.output.diff is not None:
        added, removed = changed_lines(call.output.diff)
        ending.append("  ").append(f"+{added}", "added").append(" ").append(f"-{removed}", "removed")
    if call.status is ToolCallStatus.CANCELLED:
        ending.append("  not run" if view.started_at is None else "  cancelled", "quiet")
    if view.duration >= 1:
        ending.append(f"  {seconds(view.duration)}", "quiet")
    return ending


def describe(call: ToolCall) -> str:
    """Describe a call in one line: by its own description without the tool's name, else by its arguments."""
    if call.description and call.description.strip():
        return visible_line(call.description.strip().split("\n", 1)[0].removeprefix(f"{call.tool_name} "))
    return visible_line(_compact(call.input_parameters)) if call.input_parameters else ""


def is_command(call: ToolCall) -> bool:
    """Return whether a call runs a shell command."""
    return isinstance(call.input_parameters.get("command"), str)


def _has_failed(call: ToolCall) -> bool:
    """Return whether a call ran a command that failed, which is a result like any other for the model."""
    output = call.output.text if call.output is not None else None
    return is_command(call) and output is not None and says_failure(output)


def seconds(duration: float) -> str:
    """Return a duration as text: ``3s``, ``2m 05s``."""
    whole = int(duration)
    return f"{whole}s" if whole < 60 else f"{whole // 60}m {whole % 60:02d}s"


def error_lines(call: ToolCall) -> list[Text]:
    """Return the error of a failed call, neither indented nor wrapped."""
    lines = output_lines(call.error.message) if call.error is not None else []
    shown = [Text(visible(line), "bad") for line in lines[:ERROR_LINES]]
    if len(lines) > ERROR_LINES:
        shown.append(Text(show_count(len(lines) - ERROR_LINES, "more line"), "quiet"))
    return shown


def tail_lines(output: str, width: int, glyphs: Glyphs, count: int = TAIL_LINES) -> list[Text]:
    """Return the last lines of a program's output, with a note about the omitted ones."""
    lines = output_lines(output)
    hidden = len(lines) - count
    shown = [Text(INDENT + visible(line), "quiet") for line in lines[-count:]]
    for line in shown:
        line.truncate(width - 1, overflow="ellipsis")
    if hidden > 0:
        shown.insert(0, Text(f"{INDENT}{glyphs.ellipsis} {show_count(hidden, 'line')} above", "quiet"))
    return shown


def head_lines(output: str, width: int, glyphs: Glyphs, count: int = TAIL_LINES) -> list[Text]:
    """Return the first lines of a tool's output without code fences, with a note about the omitted ones."""
    lines = [line for line in output_lines(output) if not line.startswith("```")]
    shown: list[Text] = []
    shown_lines = 0
    for line in lines:
        if (left := count - len(shown)) == 0:
            break
        # The important part, such as a path, may be at the end of a line: it is folded, not cut, while rows are left.
        rows = word_rows(visible(line[:LONGEST_LINE]), max(10, width - len(INDENT) - 1))
        if len(rows) > left or len(line) > LONGEST_LINE:
            rows = [*rows[: left - 1], rows[min(left, len(rows)) - 1][:-1] + glyphs.ellipsis[:1]]
        shown += [Text(INDENT + row, "quiet") for row in rows]
        shown_lines += 1
    if (hidden := len(lines) - shown_lines) > 0:
        shown.append(Text(f"{INDENT}{glyphs.ellipsis} {show_count(hidden, 'more line')}", "quiet"))
    return shown


def diff_block(diff: FileDiff, width: int, glyphs: Glyphs, limit: int) -> list[Text]:
    """Return at most ``limit`` lines of the change with line numbers; long lines are wrapped, not cut."""
    lines = diff_lines(diff)
    if not lines:
        what = "an empty new file" if diff.old_content is None else "no change"
        return [Text(f"{INDENT}({what})", "quiet")]
    digits = len(str(max(line.number for line in lines)))
    block: list[Text] = []
    for line in lines[:limit]:
        block += _diff_line(line, digits, width, glyphs)
    if len(lines) > limit:
        block.append(
            Text(f"{INDENT}{glyphs.ellipsis} {show_count(len(lines) - limit, 'more line')} of the change", "notice")
        )
    return block


def _diff_line(line: DiffLine, digits: int, width: int, glyphs: Glyphs) -> list[Text]:
    if line.kind is LineKind.GAP:
        return [Text(INDENT + " " * (digits - 1) + glyphs.ellipsis, "number")]
    if line.kind is LineKind.NOTE:
        return [Text(f"{INDENT}{' ' * digits} {visible_line(line.text)}", "number")]
    style = {LineKind.ADDED: "added", LineKind.REMOVED: "removed"}.get(line.kind, "")
    text = line.text.removesuffix("\r")[:LONGEST_LINE].expandtabs(4)
    if len(line.text) > LONGEST_LINE:
        text += f" {glyphs.ellipsis} ({len(line.text)} characters)"
    gutter = f"{INDENT}{line.number:>{digits}} "
    room = max(10, width - len(gutter) - 3)
    rows: list[Text] = []
    for index, part in enumerate(_code_rows(visible(text), room)):
        row = Text(gutter if index == 0 else " " * len(gutter), "number")
        row.append(f"{line.kind.value if index == 0 else ' '} {part}", style)
        rows.append(row)
    return rows


def _code_rows(line: str, room: int) -> list[str]:
    """Return a line of code in rows, of which those after the first are further to the right than its beginning."""
    indent = len(line) - len(line.lstrip())
    return word_rows(line, max(10, room), min(indent + CODE_HANGING, room // 3))


def _command_rows(line: str, room: int) -> list[str]:
    """Return a line of a shell command in rows; the indent of those after the first tells them from further lines."""
    return word_rows(line, max(10, room), CODE_HANGING)


def question_block(question: CallQuestion, workspace: str, width: int, glyphs: Glyphs) -> list[Text]:
    """Return all of what the user is asked to allow, not only the model's description of it."""
    call = question.call
    facts = facts_of(call, question.file_diff, workspace)
    head = Text().append(f"{glyphs.waiting} ", "ask").append(facts.title or visible_line(call.tool_name), "tool")
    request = call.confirmation_request
    details = request.details if request is not None else None
    body: list[Text] = []
    match details:
        case FileDiff() if (asked := question_in(call)) is not None:
            answer = filled_answer(question.edited) if question.edited is not None else ""
            lines = visible(asked.text).split("\n") + (visible(answer).split("\n") if answer else [])
            body = [Text(INDENT + line) for line in lines]
        case FileDiff() if call.tool_name == ELICITATION:
            document = (question.file_diff or details).new_content
            if question.edited is not None:
                head.append("  with your edits", "notice")
            body = [Text(INDENT + line) for line in visible(document).rstrip("\n").split("\n")]
        case FileDiff():
            diff = question.file_diff or details
            added, removed = changed_lines(diff)
            head.append("  ").append(f"+{added}", "added").append(" ").append(f"-{removed}", "removed")
            if question.edited is not None:
                head.append("  with your edits", "notice")
            body = diff_block(diff, width, glyphs, QUESTION_DIFF_LINES)
        case ExecuteDetails():
            commands = visible(details.command).rstrip("\n").split("\n")
            folded = [part for line in commands for part in _command_rows(line, width - len(INDENT) - 3)]
            body = [Text(f"{INDENT}{'$' if index == 0 else ' '} {line}") for index, line in enumerate(folded)]
            body += _trial_lines(details)
        case McpDetails():
            own_name = "" if details.tool_name == call.tool_name else f"{visible_line(details.tool_name)} "
            head.append(f"  {own_name}of the MCP server {visible_line(details.server_name)}")
            notes = (call.description or "").strip().split("\n")[1:]
            body = [Text(INDENT + visible_line(note), "notice") for note in notes]
            body += _argument_lines(call.input_parameters, glyphs)
        case GenericDetails():
            body = [Text(INDENT + line) for line in visible(details.description).split("\n")]
        case None:
            body = _argument_lines(call.input_parameters, glyphs)
    room = max(10, width - len(INDENT) - 1)
    said = [
        part for line in (facts.wants, f" {glyphs.dot} ".join(facts.facts)) if line for part in word_rows(line, room)
    ]
    return [
        *wrapped(head, width - 1),
        *(Text(INDENT + part, "quiet") for part in said),
        *(row for line in body for row in wrapped(line, width - 1)),
    ]


def _trial_lines(details: ExecuteDetails) -> list[Text]:
    """Return all of what a command did in a copy of its folder, if it was tried."""
    if details.trial is None or not details.trial.changes:
        return []
    styles = {"+": "added", "-": "removed"}
    lines = visible(details.trial.changes).rstrip("\n").split("\n")
    return [Text(INDENT + line, styles.get(line[:1], "")) for line in lines]


def choice_lines(
    question: CallQuestion, width: int, marked: int | None = None, mark: str = ""
) -> list[tuple[str, str]]:
    """Return ``(style, text)`` fragments of the choices, with aligned descriptions; without room, those are below.

    Nothing is cut: a description says what the answer covers. The choice ``marked`` (from 0) has a ``mark``.
    """
    names = [visible_line(choice.name) for choice in question.choices]
    widest = max((cell_len(name) for name in names), default=0)
    keys = max((len(choice.key) for choice in question.choices), default=0)
    indent = 2 + keys + 2
    column = indent + widest + 2
    is_beside = width - column - 1 >= NARROWEST_DESCRIPTION
    column = column if is_beside else indent + 2
    fragments: list[tuple[str, str]] = []
    for at, (choice, name) in enumerate(zip(question.choices, names, strict=True)):
        first, *more = word_rows(name, max(10, width - indent - 1))
        sign = mark if at == marked else " "
        fragments += [("prompt", f"{sign} {choice.key:>{keys}}"), ("", f"  {first}")]
        fragments += [("", f"\n{' ' * indent}{part}") for part in more]
        rows = word_rows(visible_line(choice.description or ""), max(10, width - column - 1))
        if choice.description and is_beside:
            fragments.append(("quiet", " " * (widest - cell_len(name) + 2) + rows.pop(0)))
        if choice.description:
            fragments += [("quiet", f"\n{' ' * column}{row}") for row in rows]
        fragments.append(("", "\n"))
    return fragments


def brief_choice_lines(
    question: CallQuestion, width: int, rows: int, marked: int | None = None, mark: str = ""
) -> list[tuple[str, str]] | None:
    """Return fragments of the choices without their descriptions, in at most ``rows`` rows; None if these are too few.

    Each choice has a row of its own, or, if there are not enough, they follow each other. ``marked`` is as in
    :func:`choice_lines`.
    """
    signs = [mark if at == marked else " " for at in range(len(question.choices))]
    names = [
        (f"{sign} {choice.key}", visible_line(choice.name))
        for sign, choice in zip(signs, question.choices, strict=True)
    ]
    own = [(key, f"  {name}\n") for key, name in names]
    if len(own) <= rows and all(cell_len(key) + cell_len(name) < width for key, name in own):
        return [fragment for key, name in own for fragment in (("prompt", key), ("", name))]
    fragments: list[tuple[str, str]] = []
    used, column = 1, 0
    for key, name in names:
        size = cell_len(key) + cell_len(name) + 3
        if column and column + size >= width:
            fragments.append(("", "\n"))
            used, column = used + 1, 0
        fragments += [("prompt", key), ("", f"  {name} ")]
        column += size
        if size >= width:
            return None
    return [*fragments, ("", "\n")] if used <= rows else None


def _argument_lines(arguments: JsonObject, glyphs: Glyphs) -> list[Text]:
    if not arguments:
        return []
    lines = visible(json.dumps(arguments, ensure_ascii=False, indent=2, default=str)).split("\n")
    shown = [Text(INDENT + line) for line in lines[:ARGUMENT_LINES]]
    if len(lines) > ARGUMENT_LINES:
        shown.append(
            Text(f"{INDENT}{glyphs.ellipsis} {show_count(len(lines) - ARGUMENT_LINES, 'more line')}", "notice")
        )
    return shown


def _compact(arguments: JsonObject) -> str:
    values: list[object] = list(arguments.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json.dumps(arguments, ensure_ascii=False, default=str)


def typed_lines(typed: TypedAhead, glyphs: Glyphs) -> list[Text]:
    """Return the messages that wait, one line each, and the draft with its cursor."""
    waiting = [*((text, "sent") for text in typed.sent), *((text, "queued") for text in typed.queue)]
    lines = [
        Text(f"{glyphs.prompt} {visible_line(text)}", "quiet").append(f"  {state}", "notice") for text, state in waiting
    ]
    if typed.draft:
        *above, last = visible(typed.draft).split("\n")
        lines += [Text(f"{glyphs.prompt if not n else ' '} {line}") for n, line in enumerate((*above, f"{last}_"))]
    if len(lines) <= TYPED_LINES:
        return lines
    hidden = len(lines) - TYPED_LINES + 1
    return [Text(f"{glyphs.ellipsis} {show_count(hidden, 'line')}", "quiet"), *lines[hidden:]]
