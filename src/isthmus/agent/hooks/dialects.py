"""Names of tools and JSON of calls as hooks of Gemini CLI and of Claude Code expect them. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, assert_never

from isthmus.agent.approval.policy import ApprovalMode
from isthmus.agent.approval.shell_command import analyse
from isthmus.record import record
from isthmus.settings.rules.claude_names import CLAUDE_NAMES
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent
from isthmus.text.linear_pattern import LinearPattern, TooMuchWorkError
from isthmus.text.wildcards import matches_wildcard

GEMINI_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"apply_patch": ("replace", "write_file"), "notebook_edit": ("replace", "write_file")}
)
"""Names of Gemini CLI's tools with the effect of one that it does not have."""

_CLAUDE_FIELDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "glob": {"dir_path": "path"},
        "grep_search": {"dir_path": "path", "include_pattern": "glob"},
        "list_directory": {"dir_path": "path"},
        "read_file": {"start_line": "offset"},
        "replace": {"allow_multiple": "replace_all"},
    }
)
"""Names that Claude Code gives the same arguments."""
SESSION_SOURCE = "startup"
"""Word of both programs for a session that begins with its first prompt."""
_CLAUDE_MODES = {
    ApprovalMode.DEFAULT: "default",
    ApprovalMode.AUTO_EDIT: "acceptEdits",
    ApprovalMode.PLAN: "plan",
    ApprovalMode.YOLO: "bypassPermissions",
}
_PLAIN = re.compile(r"[A-Za-z0-9_|, -]+")
"""A matcher of Claude Code without signs of a pattern: names, of which one must be the tool's."""
_CONDITION = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)


@record
class HookedCall:
    """A tool call as hooks see it.

    ``effect`` has the arguments with the usual names and whole paths. ``own_name`` is the tool's name on its MCP server
    ``server``. ``now`` is the time in ISO 8601.
    """

    id: str
    tool: str
    arguments: Mapping[str, Any]
    effect: Mapping[str, Any]
    session_id: str
    workspace: str
    mode: ApprovalMode
    now: str
    server: str | None = None
    own_name: str = ""


@record
class HookedPrompt:
    """A prompt as hooks see it; ``now`` is the time in ISO 8601."""

    text: str
    session_id: str
    workspace: str
    mode: ApprovalMode
    now: str


@record
class HookedSubagent:
    """A subagent as hooks see it: the id of its task, and the name of its definition."""

    task_id: str
    name: str


@record
class HookedResult:
    """Result of a call: the text for the model, what the user sees, and the error's message or None."""

    for_model: str
    shown: str = ""
    error: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])


def name_for(hook: Hook, call: HookedCall) -> str | None:
    """Return the name under which a hook gets a call; None if it is not for that call."""
    names = tuple(_names(hook.dialect, call))
    for name in names:
        if _matches(hook, name) and _fulfils(hook.condition, name, call):
            return name
    if _matches(hook, call.tool) and _fulfils(hook.condition, names[0], call):
        return names[0]  # its matcher has our name for a tool that its program calls otherwise
    return None


def input_for(hook: Hook, name: str, call: HookedCall, result: HookedResult | None = None) -> dict[str, Any]:
    """Return the JSON that a hook gets on its standard input."""
    base: dict[str, Any] = {
        "session_id": call.session_id,
        "transcript_path": "",
        "cwd": call.workspace,
        "hook_event_name": hook.event_name,
        "tool_name": name,
    }
    match hook.dialect:
        case HookDialect.GEMINI:
            base |= {"timestamp": call.now, "tool_input": _gemini_input(name, call)}
            if call.server is not None:
                base["mcp_context"] = {"server_name": call.server, "tool_name": call.own_name}
            if result is not None:
                response: dict[str, Any] = {"llmContent": result.for_model, "returnDisplay": result.shown}
                if result.error is not None:
                    response["error"] = {"message": result.error}
                base["tool_response"] = response
        case HookDialect.CLAUDE:
            base |= {
                "permission_mode": _CLAUDE_MODES[call.mode],
                "tool_use_id": call.id,
                "tool_input": _claude_input(name, call),
            }
            if result is not None and hook.event is HookEvent.AFTER_FAILED_TOOL:
                base["error"] = result.error or result.for_model
            elif result is not None:
                base["tool_response"] = _claude_response(call, result)
        case _:
            assert_never(hook.dialect)
    return base


def prompt_input_for(hook: Hook, prompt: HookedPrompt) -> dict[str, Any]:
    """Return the JSON that a hook gets for a prompt."""
    return moment_input_for(hook, prompt, {"prompt": prompt.text})


def start_input_for(hook: Hook, prompt: HookedPrompt) -> dict[str, Any]:
    """Return the JSON that a hook gets at the start of a session, which begins with ``prompt``."""
    return moment_input_for(hook, prompt, {"source": SESSION_SOURCE})


def subagent_input_for(hook: Hook, prompt: HookedPrompt, subagent: HookedSubagent) -> dict[str, Any]:
    """Return the JSON that a hook gets before a subagent works on its task."""
    return moment_input_for(hook, prompt, {"agent_id": subagent.task_id, "agent_type": subagent.name})


def end_input_for(
    hook: Hook, prompt: HookedPrompt, answer: str, subagent: HookedSubagent | None = None, *, is_again: bool
) -> dict[str, Any]:
    """Return the JSON that a hook gets when the agent, or ``subagent``, has answered a prompt.

    ``is_again``: a hook has made it go on with it before.
    """
    match hook.dialect:
        case HookDialect.GEMINI:
            fields = {"prompt": prompt.text, "prompt_response": answer, "stop_hook_active": is_again}
        case HookDialect.CLAUDE:
            fields = {"stop_hook_active": is_again, "last_assistant_message": answer}
            if subagent is not None:
                fields |= {"agent_id": subagent.task_id, "agent_type": subagent.name, "agent_transcript_path": ""}
        case _:
            assert_never(hook.dialect)
    return moment_input_for(hook, prompt, fields)


def starts_at(hook: Hook) -> bool:
    """Return whether the matcher of a hook is for the start of a session."""
    return _matches(hook, SESSION_SOURCE)


def is_of_subagent(hook: Hook, subagent: HookedSubagent) -> bool:
    """Return whether the matcher of a hook is for a subagent."""
    return _matches(hook, subagent.name)


def moment_input_for(hook: Hook, prompt: HookedPrompt, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON that a hook gets at a moment with these fields of its own."""
    base: dict[str, Any] = {
        "session_id": prompt.session_id,
        "transcript_path": "",
        "cwd": prompt.workspace,
        "hook_event_name": hook.event_name,
        **fields,
    }
    match hook.dialect:
        case HookDialect.GEMINI:
            return {**base, "timestamp": prompt.now}
        case HookDialect.CLAUDE:
            return {**base, "permission_mode": _CLAUDE_MODES[prompt.mode]}
        case _:
            assert_never(hook.dialect)


def _names(dialect: HookDialect, call: HookedCall) -> Iterator[str]:
    """Yield the names of a tool in a dialect, the usual one first."""
    match dialect:
        case HookDialect.GEMINI:
            yield call.tool if call.server is None else f"mcp_{call.server}_{call.own_name}"
            yield from GEMINI_NAMES.get(call.tool, ())
        case HookDialect.CLAUDE:
            if call.server is not None:
                yield f"mcp__{call.server}__{call.own_name}"
            else:
                yield from CLAUDE_NAMES.get(call.tool, (call.tool,))
        case _:
            assert_never(dialect)


def _matches(hook: Hook, name: str) -> bool:
    """Return whether the matcher of a hook is for a name, as its program decides it."""
    if not hook.matcher:
        return True
    if hook.dialect is HookDialect.CLAUDE and _PLAIN.fullmatch(hook.matcher):
        return name in (part.strip() for part in re.split(r"[|,]", hook.matcher))
    try:
        return LinearPattern(hook.matcher).is_in(name)
    except TooMuchWorkError:
        return True


def _fulfils(condition: str, name: str, call: HookedCall) -> bool:
    """Return whether a call fulfils Claude Code's ``if``; True where that is not known for certain."""
    found = _CONDITION.fullmatch(condition.strip())
    if not condition or found is None:
        return True
    tool, pattern = found[1], found[2]
    if tool != name and tool not in CLAUDE_NAMES.get(call.tool, ()):
        return False
    command = call.arguments.get("command")
    if pattern is None or name != "Bash" or not isinstance(command, str):
        return True
    analysis = analyse(command)
    if analysis is None:
        return True
    glob = pattern.replace(":*", " *")
    parts = [command, *(" ".join(simple.words) for simple in analysis.commands)]
    return any(matches_wildcard(glob, text) for part in parts for text in (part, f"{part} "))


def _gemini_input(name: str, call: HookedCall) -> Mapping[str, Any]:
    return call.effect if name in GEMINI_NAMES.get(call.tool, ()) else call.arguments


def _claude_input(name: str, call: HookedCall) -> Mapping[str, Any]:
    if call.server is not None or call.tool not in CLAUDE_NAMES:
        return call.arguments
    names = _CLAUDE_FIELDS.get(call.tool, {})
    fields = {names.get(key, key): value for key, value in call.effect.items()}
    if name == "Edit":
        fields.setdefault("old_string", "")
        fields.setdefault("new_string", fields.get("content", ""))
    if name != "Write":
        fields.pop("content", None)
    return fields


def _claude_response(call: HookedCall, result: HookedResult) -> Mapping[str, Any]:
    if call.tool == "run_shell_command":
        return {"stdout": result.shown or result.for_model, "stderr": "", "interrupted": False, "isImage": False}
    response: dict[str, Any] = {"success": result.error is None, "content": result.for_model}
    if isinstance(path := call.effect.get("file_path"), str):
        response["filePath"] = path
    return response
