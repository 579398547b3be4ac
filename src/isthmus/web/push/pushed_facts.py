"""Facts of a question that a notification tells, and whether it may be answered there. Pure.

A notification has no content of files. It may be answered only if the whole question is one command that it shows
exactly: one short line in which each character is seen as it is. All else is opened.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any

from isthmus.development_tool import ConfirmationOption, ExecuteDetails, FileDiff, McpDetails, ToolCall
from isthmus.encoding.codec import to_json
from isthmus.forms.asked_question import ASK_USER, question_in
from isthmus.questions import ELICITATION, QUESTION_MARK, SAMPLING
from isthmus.record import record
from isthmus.text.diff import line_opcodes, split_lines
from isthmus.text.visible import visible_line, with_ellipsis

LONGEST_COMMAND = 120
"""Maximum number of characters of a command that is shown whole, and of its folder."""
LONGEST_TEXT = 120
"""Maximum number of characters of any other text."""
COUNTED_CHARACTERS = 200_000
"""Maximum size of both sides of a change whose lines are counted, in characters."""
_ALLOW_ONCE = frozenset({"proceed_once", "allow_once", "allow-once"})
_REJECT_ONCE = frozenset({"cancel", "reject_once", "reject-once"})
_GAP = re.compile(r"\A\s|\s\s|\s\Z")
"""Spaces that a notification may leave out or draw as one."""
_REORDERED = frozenset({"R", "AL", "AN"})
"""Bidirectional classes of letters that change the order of the text around them."""


class PushedAct(StrEnum):
    """An answer that a button of a notification gives."""

    ALLOW = "allow"
    REJECT = "reject"


@record
class PushedFacts:
    """Facts of a question. ``kind`` says which of the others are set.

    ``command`` has a text and a folder; ``long`` the program and the folder of a command that is not shown, and its
    length; ``change`` and ``create`` a path, a folder and perhaps the counts of lines; ``call`` a tool and its server;
    ``model`` a server; ``question`` its first line; ``other`` the name of a tool. An empty kind has none.
    """

    kind: str
    text: str = ""
    folder: str = ""
    length: int | None = None
    added: int | None = None
    removed: int | None = None


def group_of(call: ToolCall) -> str:
    """Return the name of what calls of a task are asked together with: questions of one asker are one form."""
    asker = call.tool_call_id.rpartition(QUESTION_MARK)[0]
    return f"{ASK_USER} {asker}" if call.tool_name == ASK_USER else call.tool_call_id


def pushed_facts(call: ToolCall, workspace: str, home: str) -> PushedFacts:
    """Return what a notification tells of a question. ``home`` is the folder that is written as ``~``."""
    if (asked := _question(call)) is not None:
        return asked
    request = call.confirmation_request
    match request.details if request is not None else None:
        case ExecuteDetails(command, directory):
            folder = _folder(directory or workspace, home)
            if is_exact(command):
                return PushedFacts("command", command, folder)
            return PushedFacts("long", _program(command), folder, length=len(command))
        case FileDiff() as diff:
            return _change(call, diff, workspace, home)
        case McpDetails(server, tool):
            return PushedFacts("call", _line(tool), _line(server))
        case _:
            return PushedFacts("other", _line(call.tool_name), _folder(workspace, home))


def pushed_answers(call: ToolCall, facts: PushedFacts) -> dict[PushedAct, ConfirmationOption]:
    """Return the options that a notification with these facts may offer; empty for all but a command shown whole."""
    request = call.confirmation_request
    details = request.execute_details if request is not None else None
    if request is None or details is None or facts.kind != "command" or details.command != facts.text:
        return {}
    # A trial asks about changes that are not shown; a command in the background goes on after its call.
    if details.trial is not None or call.input_parameters.get("is_background") is True:
        return {}
    if details.working_directory is None or not is_exact(details.working_directory):
        return {}
    if request.words_option is not None or QUESTION_MARK in call.tool_call_id:
        return {}
    allow = _only(request.options, "allow_once", _ALLOW_ONCE)
    reject = _only(request.options, "reject_once", _REJECT_ONCE)
    if allow is None:
        return {}
    return {PushedAct.ALLOW: allow} if reject is None else {PushedAct.REJECT: reject, PushedAct.ALLOW: allow}


def question_digest(call: ToolCall) -> str:
    """Return a digest of all that a question asks: its tool, arguments, details and options."""
    asked = None if call.confirmation_request is None else to_json(call.confirmation_request)
    everything = [call.tool_call_id, call.tool_name, call.input_parameters, asked]
    # The order of members is lost in some journals.
    return sha256(json.dumps(everything, sort_keys=True, default=str).encode()).hexdigest()


def is_exact(text: str) -> bool:
    """Return whether a text is one short line that is drawn as it is, wherever a notification shows it."""
    if not text or len(text) > LONGEST_COMMAND or visible_line(text) != text or _GAP.search(text):
        return False
    return all(
        unicodedata.category(each)[0] in "LNPSZ" and unicodedata.bidirectional(each) not in _REORDERED for each in text
    )


def shown_title(title: str) -> str:
    """Return the title of a session as a notification tells it."""
    return with_ellipsis(visible_line(title.strip()), 80)


def _question(call: ToolCall) -> PushedFacts | None:
    """Return the facts of a call that is a question itself, or asks the model."""
    about = call.input_parameters
    if call.tool_name == SAMPLING:
        return PushedFacts("model", _line(_text(about.get("server"))))
    if (asked := question_in(call)) is not None:
        return PushedFacts("question", _first_line(asked.text or asked.header))
    if call.tool_name == ELICITATION:
        return PushedFacts("question", _first_line(_text(about.get("message")) or call.description or ""))
    return None


def _change(call: ToolCall, diff: FileDiff, workspace: str, home: str) -> PushedFacts:
    below = f"{workspace.rstrip('/')}/"
    path = diff.file_path or diff.file_name
    is_below = bool(workspace) and path.startswith(below)
    shown = _line(path.removeprefix(below)) if is_below else _folder(path, home)
    folder = _folder(workspace, home) if is_below else ""
    if diff.old_content is None:
        return PushedFacts("create", shown, folder, added=len(split_lines(diff.new_content)))
    if len(diff.old_content) + len(diff.new_content) > COUNTED_CHARACTERS:
        return PushedFacts("change", shown, folder)
    codes = line_opcodes(split_lines(diff.old_content), split_lines(diff.new_content))
    changed = [code for code in codes if code[0] != "equal"]
    removed, added = sum(code[2] - code[1] for code in changed), sum(code[4] - code[3] for code in changed)
    return PushedFacts("change", shown, folder, added=added, removed=removed)


def _only(options: Sequence[ConfirmationOption], kind: str, ids: frozenset[str]) -> ConfirmationOption | None:
    """Return the option of a kind: by the kind that its agent states, otherwise by an id that is certain."""
    found = [option for option in options if (option.kind == kind if option.kind else option.id in ids)]
    return found[0] if len(found) == 1 else None


def _program(command: str) -> str:
    """Return the name of the program with which a command begins, if it is a plain word; else nothing."""
    first = re.match(r"[A-Za-z0-9._/+-]{1,40}(?=\s|\Z)", command)
    return first[0].rpartition("/")[2] if first is not None else ""


def _folder(path: str, home: str) -> str:
    below = f"{home.rstrip('/')}/"
    if home.strip("/") and f"{path}/".startswith(below):
        path = f"~/{path[len(below) :]}".rstrip("/")
    return _line(path)


def _first_line(text: str) -> str:
    return _line(text.strip().partition("\n")[0])


def _line(text: str) -> str:
    return with_ellipsis(visible_line(text.strip()[: LONGEST_TEXT * 2]), LONGEST_TEXT)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
