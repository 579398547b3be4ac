"""Permission questions of Claude Code (2.1), as its hook PermissionRequest gets and answers them.

The message has ``tool_name`` and ``tool_input``. The user sees the whole input: a command and the parameters of an MCP
tool as they are, an edit as a diff against the file. Questions that are forms (``AskUserQuestion``) or plans
(``ExitPlanMode``) stay in the terminal, because an answer of yes or no says too little.
"""

import json
import os
from pathlib import PurePath
from typing import Final, cast

from isthmus.encoding.codec import JsonObject
from isthmus.errors import DecodeError
from isthmus.ide.claude.discovery.cli_choice import CLAUDE_CODE
from isthmus.ide.claude.discovery.session_file import session_file
from isthmus.ide.permissions import PermissionAnswer, PermissionAsked, PermissionHook
from isthmus.ide.reviews.file_before import file_before
from isthmus.text.diff import MAXIMUM_DIFF_CHARACTERS, unified_diff
from isthmus.text.visible import visible_line

EVENT: Final = "PermissionRequest"
IN_TERMINAL: Final = frozenset({"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"})
"""Tools whose question has more answers than yes and no."""
MAXIMUM_CHARACTERS: Final = 1_000_000
"""Maximum size of a question's text; a longer one is asked in the terminal alone."""
_MCP: Final = "mcp__"
_OURS: Final = frozenset({"description", "Folder", "Subagent"})
"""Parameters of a command that could be taken for what is known of it without the agent."""


def read_permission(message: JsonObject) -> PermissionAsked | None:
    """Return the question in a message of the hook; None for one that its terminal alone can ask. Blocks.

    Raises:
        DecodeError: the message is none of this hook.
    """
    tool, given = message.get("tool_name"), message.get("tool_input")
    if message.get("hook_event_name") != EVENT or not isinstance(tool, str) or not isinstance(given, dict):
        raise DecodeError("message", f"one of the hook {EVENT} with tool_name and tool_input", tool)
    if tool in IN_TERMINAL:
        return None
    title, facts, shown, file = _step(tool, cast(JsonObject, given))
    known = (("Folder", message.get("cwd")), ("Subagent", message.get("agent_type")), *facts.items())
    head = [visible_line(f"{name}: {value}") for name, value in known if isinstance(value, str) and value]
    text = "\n".join([*head, "", shown])
    if len(text) > MAXIMUM_CHARACTERS:
        return None
    is_subagent = isinstance(message.get("agent_id"), str)
    return PermissionAsked(CLAUDE_CODE, f"{CLAUDE_CODE} wants to {title}", text, file, may_be_first=is_subagent)


def write_permission(answer: PermissionAnswer) -> JsonObject:
    """Return the output of the hook. The terminal shows the message of a refusal, and the model gets it."""
    decision: dict[str, object] = {"behavior": "allow"}
    if not answer.is_allowed:
        where = f"The user refused this in {visible_line(answer.by)}"
        decision = {"behavior": "deny", "message": f"{where}: {answer.reason}" if answer.reason else f"{where}."}
    return {"hookSpecificOutput": {"hookEventName": EVENT, "decision": decision}}


CLAUDE_PERMISSIONS = PermissionHook(read_permission, session_file, write_permission)


def _step(tool: str, given: JsonObject) -> tuple[str, dict[str, str], str, str | None]:
    """Return the title of a step, facts about it, all else of its input, and the file that it edits."""
    rest = dict(given)
    match tool:
        case "Bash" if isinstance(command := rest.pop("command", None), str):
            facts = {f"Its {name}" if name in _OURS else name: _line(rest[name]) for name in rest}
            return "run a command", facts, command, None
        case "Edit" | "MultiEdit" | "Write" if isinstance(path := rest.pop("file_path", None), str):
            if not PurePath(path).is_absolute() or "\0" in path:  # the agent's folder is not ours
                return f"edit {path}", {}, _json(rest), None
            target = os.path.realpath(path)
            facts = {} if target == os.path.normpath(path) else {"A link to": target}
            return f"edit {path}", facts, _edit(path, rest), path
        case _ if tool.startswith(_MCP):
            server, _, name = tool.removeprefix(_MCP).partition("__")
            return f"use {name} of the MCP server {server}", {}, _json(given), None
        case _:
            return f"use {tool}", {}, _json(given), None


def _line(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _edit(path: str, given: JsonObject) -> str:
    """Return an edit as a diff against the file; as its input, if it does not apply or the diff is too long."""
    file = file_before(path)
    before = file.text
    after = _after(before, given)
    if (
        file.other is not None
        or after is None
        or after == before
        or len(before or "") + len(after) > MAXIMUM_DIFF_CHARACTERS
    ):
        return _json(given)
    return unified_diff(before, after, PurePath(path).as_posix().lstrip("/"))


def _after(before: str | None, given: JsonObject) -> str | None:
    """Return the text of a file after an edit; None if it does not apply."""
    match given:
        case {"content": str(content)} if len(given) == 1:
            return content
        case {"edits": edits} if len(given) == 1 and isinstance(edits, list):
            text = before
            for edit in cast("list[object]", edits):
                text = _replaced(text, cast(JsonObject, edit)) if isinstance(edit, dict) else None
            return text
        case _:
            return _replaced(before, given)


def _replaced(text: str | None, edit: JsonObject) -> str | None:
    match edit:
        case {"old_string": str(old), "new_string": str(new)} if text is not None and old and set(edit) <= {
            "old_string", "new_string", "replace_all"
        }:  # fmt: skip
            count = text.count(old)
            if edit.get("replace_all") is True:
                return text.replace(old, new) if count else None
            return text.replace(old, new) if count == 1 else None
        case _:
            return None
