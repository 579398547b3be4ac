"""The words of a question: its title, what the agent wants, what the call touches, what the answer covers.

Facts come from the call itself; the agent's own words stand in quotes. A fact that is not known is not stated: whether
a command is in a sandbox, for example. Pure; not the choices and their descriptions, which the agent decides.
"""

from dataclasses import replace

from isthmus.development_tool import CommandTrial, ExecuteDetails, FileDiff, GenericDetails, McpDetails, ToolCall
from isthmus.forms.asked_question import question_in
from isthmus.questions import ELICITATION, LOOP_QUESTION, QUESTION_MARK, SAMPLING
from isthmus.record import record
from isthmus.text.units import show_count
from isthmus.text.visible import visible_line, with_ellipsis

EDIT_TOOLS = frozenset({"replace", "write_file"})
"""Tools that write the file that they name, and nothing else."""
REASON_KEYS = ("instruction", "description")
"""Arguments of tools in which a model says why it makes the call."""
LONGEST_REASON = 400
"""Maximum number of characters of the agent's words that are shown."""

RESTORE_TOOL = "restore"
"""Tool of /restore and /rewind."""
GO_ON = "Let the model go on"
LONGEST_HEADER = 60
"""Maximum number of characters of the short name of a question that the agent asks."""


@record
class QuestionFacts:
    """``title`` begins with a verb, and is empty if only the tool's name is known. The others may be empty, too.

    ``asker`` is the subagent that wants the call.
    """

    title: str = ""
    wants: str = ""
    touches: str = ""
    covers: str = ""
    asker: str = ""

    @property
    def facts(self) -> tuple[str, ...]:
        """The reach of the call and of the answer, as far as they are known."""
        covered = f"covers {self.covers}" if self.covers else ""
        asked = f"asked by the subagent {self.asker}" if self.asker else ""
        return tuple(part for part in (self.touches, covered, asked) if part)


def facts_of(call: ToolCall, diff: FileDiff | None, workspace: str) -> QuestionFacts:
    """Return the words for a pending call; ``diff`` is the change under review, with the user's edits."""
    if call.tool_name in (ELICITATION, SAMPLING):
        return QuestionFacts()  # the question is a server's, in its own words
    if call.tool_name == LOOP_QUESTION:
        return QuestionFacts(shown_name(call))
    if (asked := question_in(call)) is not None:
        return QuestionFacts(with_ellipsis(visible_line(asked.header), LONGEST_HEADER))
    return replace(_facts(call, diff, workspace), asker=_subagent(call))


def _facts(call: ToolCall, diff: FileDiff | None, workspace: str) -> QuestionFacts:
    request = call.confirmation_request
    match request.details if request is not None else None:
        case FileDiff() as proposed:
            return _edit(call, diff or proposed, workspace)
        case ExecuteDetails(_, directory, CommandTrial(id=str(kept))) if kept:
            place = f"ran in a copy of {visible_line(directory)}" if directory else "ran in a copy of the folder"
            return QuestionFacts("Keep what a command changed", _reason(call), place, "these changes")
        case ExecuteDetails(_, directory):
            place = f"runs in {visible_line(directory)}" if directory else ""
            is_beside = call.input_parameters.get("is_background") is True
            title = "Run a command in the background" if is_beside else "Run a command"
            return QuestionFacts(title, _reason(call), place, "this command, once")
        case GenericDetails() if call.tool_name == RESTORE_TOOL and "checkpoint_id" in call.input_parameters:
            return QuestionFacts("Put files back")
        case McpDetails(server):
            return QuestionFacts("", "", f"goes to {visible_line(server)}, an MCP server", "this call, once")
        case _:
            return QuestionFacts()


def shown_name(call: ToolCall) -> str:
    """Return the name of a call's tool, or in words what a question of the agent itself is about."""
    return GO_ON if call.tool_name == LOOP_QUESTION else visible_line(call.tool_name)


def shown_path(diff: FileDiff, workspace: str) -> str:
    """Return the path for display: relative to the workspace, absolute for a file outside of it."""
    return diff.file_path.removeprefix(workspace.rstrip("/") + "/") if workspace else diff.file_path or diff.file_name


def _edit(call: ToolCall, diff: FileDiff, workspace: str) -> QuestionFacts:
    path = visible_line(shown_path(diff, workspace))
    if diff.old_content is None:
        count = show_count(len(diff.new_content.splitlines()), "line")
        return QuestionFacts(f"Create {path}", _reason(call), f"a new file, {count}", "this file only")
    only = ", nothing else" if call.tool_name in EDIT_TOOLS else ""
    return QuestionFacts(f"Change {path}", _reason(call), f"touches this file{only}", "this change only")


def _subagent(call: ToolCall) -> str:
    """Return the subagent for which a task asks: the description of this call begins with its name."""
    is_for_another = QUESTION_MARK in call.tool_call_id
    return visible_line((call.description or "").partition(": ")[0]) if is_for_another else ""


def _reason(call: ToolCall) -> str:
    """Return the agent's words, in quotes."""
    for key in REASON_KEYS:
        value = call.input_parameters.get(key)
        if isinstance(value, str) and (words := visible_line(value.strip())):
            return f'"{words}"' if len(words) <= LONGEST_REASON else f'"{words[:LONGEST_REASON]} ..."'
    return ""
