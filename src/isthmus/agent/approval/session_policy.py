"""Checks of a session's AgentSettings, and their effect on the agent's own approval policy. Pure.

A server may set a ceiling that no client can lift. Not here: addresses of MCP servers, which are checked on
connecting, and workspaces, see ``isthmus.engine.port.workspaces``.
"""

import re
from dataclasses import replace
from urllib.parse import urlsplit

from isthmus.agent.approval.grants import grants_from_settings
from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.client import InvalidRequest
from isthmus.development_tool import AgentSettings, McpServerSettings, decode_agent_settings
from isthmus.encoding.codec import JsonObject
from isthmus.errors import DecodeError
from isthmus.models.port.base import EFFORTS
from isthmus.record import record

FREEDOM = (ApprovalMode.PLAN, ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT, ApprovalMode.YOLO)
"""The modes, strictest first."""
MAXIMUM_ENTRIES = 200
"""Maximum number of entries in a list."""
MAXIMUM_CHARACTERS = 1000
"""Maximum length in characters of an entry or a model's name."""
MAXIMUM_COMMAND_CHARACTERS = 100_000
"""Maximum length of a client's command with its arguments and variables: far below what an operating system allows."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOOL_NAME = re.compile(r"[\w.-]+")
_FILE_NAME = re.compile(r"[^/\\\x00-\x1f]+")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@record
class SettingsRule:
    """Limits of AgentSettings. ``max_approval_mode`` is the most permissive mode that they may name.

    With a maximum below ``yolo`` they may not allow tools either. Without ``may_widen`` they may only make the agent's
    own policy stricter: they may name no allowed tools, no model, no effort, no further folders, and no more permissive
    mode.
    """

    max_approval_mode: ApprovalMode = ApprovalMode.YOLO
    may_widen: bool = True

    def without_yolo(self) -> "SettingsRule":
        """Return the rule for a folder whose settings refuse the approval mode ``yolo``."""
        is_yolo = self.max_approval_mode is ApprovalMode.YOLO
        return replace(self, max_approval_mode=ApprovalMode.AUTO_EDIT) if is_yolo else self


def wrong_entry(entry: str) -> str | None:
    """Return the fault of an entry of an allow-list; None if it is valid."""
    if _TOOL_NAME.fullmatch(entry) or ("(" in entry and grants_from_settings([entry])):
        return None
    return (
        "expected the name of a tool, or run_shell_command(WORDS) with the words that the allowed commands begin with,"
        f" received {entry[:200]!r}"
    )


def check_agent_settings(value: JsonObject) -> AgentSettings:
    """Return AgentSettings as received, after a check of their form. The workspace is checked elsewhere.

    Raises:
        InvalidRequest: a field has the wrong type; the text names it.
    """
    try:
        return decode_agent_settings({"workspace_path": "/", **value})
    except DecodeError as error:
        raise InvalidRequest(str(error)) from error


def check_settings(
    value: JsonObject,
    rule: SettingsRule,
    own: ApprovalMode = ApprovalMode.DEFAULT,
    *,
    yolo_refusal: str | None = None,
) -> None:
    """Check the form of received AgentSettings, and that the rule allows them; ``own`` is the agent's own mode.

    ``yolo_refusal`` is why the settings of the session's folder refuse the approval mode ``yolo``.

    Raises:
        InvalidRequest: a field is invalid or not allowed here; the text begins with its name.
    """
    settings = check_agent_settings(value)
    for problem in _problems(settings, rule, own):
        raise InvalidRequest(problem)
    if yolo_refusal is not None:
        if settings.approval_mode == ApprovalMode.YOLO:
            raise InvalidRequest(f"approval_mode yolo is refused in this folder: {yolo_refusal}; choose another one")
        for problem in _problems(settings, rule.without_yolo(), _without_yolo(own)):
            raise InvalidRequest(f"{problem} (yolo is refused in this folder: {yolo_refusal})")


def policy_for(base: Policy, settings: AgentSettings | None, rule: SettingsRule, *, yolo_refusal: str | None) -> Policy:
    """Return the policy of a session: the agent's own, changed by the session's settings as far as the rule allows.

    ``yolo_refusal`` is why the settings of the session's folder refuse the approval mode ``yolo``; None if they allow
    it. If they refuse it, an agent in that mode asks as in the default mode.
    """
    if yolo_refusal is not None:
        base, rule = replace(base, mode=_without_yolo(base.mode)), rule.without_yolo()
    if settings is None:
        return base
    mode = _mode(settings.approval_mode) or base.mode
    if _is_freer(mode, base.mode) and (not rule.may_widen or _is_freer(mode, rule.max_approval_mode)):
        mode = base.mode
    allowed = settings.allowed_tools if _may_allow_tools(rule) else ()
    return replace(base, mode=mode, grants=base.grants | grants_from_settings(allowed))


def _problems(settings: AgentSettings, rule: SettingsRule, own: ApprovalMode) -> list[str]:
    problems: list[str] = []
    if settings.approval_mode:
        mode = _mode(settings.approval_mode)
        ceiling = rule.max_approval_mode if rule.may_widen else own
        if mode is None:
            known = ", ".join(FREEDOM)
            problems.append(f"approval_mode is {settings.approval_mode[:100]!r}; expected one of {known}")
        elif _is_freer(mode, ceiling) and _is_freer(mode, own):
            allowed = ", ".join(item for item in FREEDOM if not _is_freer(item, ceiling))
            problems.append(f"approval_mode {mode} is not allowed on this server; allowed are {allowed}")
    if settings.allowed_tools and not _may_allow_tools(rule):
        problems.append("allowed_tools is not accepted on this server: a user is asked about each tool; leave it out")
    problems += _list_problems("allowed_tools", settings.allowed_tools)
    problems += [f"allowed_tools: {wrong}" for item in settings.allowed_tools if (wrong := wrong_entry(item.strip()))]
    if settings.model and not rule.may_widen:
        problems.append("model is not accepted on this server, which sets its own; leave it out")
    if settings.model and len(settings.model) > MAXIMUM_CHARACTERS:
        problems.append(f"model: expected at most {MAXIMUM_CHARACTERS} characters")
    if settings.effort and not rule.may_widen:
        problems.append("effort is not accepted on this server, which sets its own; leave it out")
    elif settings.effort and settings.effort not in EFFORTS:
        problems.append(f"effort is {settings.effort[:100]!r}; expected one of {', '.join(EFFORTS)}")
    if settings.additional_directories and not rule.may_widen:
        problems.append("additional_directories is not accepted on this server; leave it out")
    problems += _list_problems("additional_directories", settings.additional_directories)
    problems += _list_problems("context_files", settings.context_files)
    problems += [
        f"context_files: expected the name of a file without its folder, received {name[:200]!r}"
        for name in settings.context_files
        if _FILE_NAME.fullmatch(name) is None or name in (".", "..")
    ]
    problems += _list_problems("mcp_servers", [server.name for server in settings.mcp_servers])
    for server in settings.mcp_servers:
        problems += _server_problems(server)
    return problems


def _list_problems(key: str, items: "list[str] | tuple[str, ...]") -> list[str]:
    if len(items) > MAXIMUM_ENTRIES:
        return [f"{key}: expected at most {MAXIMUM_ENTRIES} entries, received {len(items)}"]
    if any(len(item) > MAXIMUM_CHARACTERS for item in items):
        return [f"{key}: expected entries of at most {MAXIMUM_CHARACTERS} characters"]
    if key == "mcp_servers" and len(set(items)) < len(items):
        return [f"{key}: expected each name once"]
    return []


def _server_problems(server: McpServerSettings) -> list[str]:
    if not server.name.strip():
        return ["mcp_servers: expected a name for each server"]
    if not server.name.isprintable():
        return [f"mcp_servers: the name {server.name[:100]!r} has characters that cannot be shown"]
    if server.url is not None and server.command is not None:
        return [f"mcp_servers: {server.name} has a url and a command; expected one of them"]
    if server.command is not None:
        return _command_problems(server)
    if server.url is None:
        if server.headers:
            return [f"mcp_servers: {server.name} has headers without a url; they go with a client's own server only"]
        if server.args or server.env:
            return [f"mcp_servers: {server.name} has args or env without a command"]
        return []
    try:
        parts = urlsplit(server.url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return [f"mcp_servers: the url of {server.name} is not a valid URL"]
    if not usable or parts.username is not None or parts.password is not None or not server.url.isprintable():
        return [f"mcp_servers: the url of {server.name} must be an http(s) URL without credentials"]
    wrong = [name for name, text in (server.headers or {}).items() if not _is_header(name, text)]
    return [f"mcp_servers: the headers of {server.name} are invalid: {', '.join(wrong)[:200]}"] if wrong else []


def _command_problems(server: McpServerSettings) -> list[str]:
    env = server.env or {}
    values = (server.command or "", *server.args, *env, *env.values())
    if not all(isinstance(value, str) and "\0" not in value for value in values) or not server.command:
        return [f"mcp_servers: expected command, args and env of {server.name} as texts without null characters"]
    if sum(map(len, values)) > MAXIMUM_COMMAND_CHARACTERS:
        return [f"mcp_servers: the command of {server.name} is too long"]
    wrong = [name for name in env if _VARIABLE.fullmatch(name) is None]
    return [f"mcp_servers: {server.name} has variables with invalid names: {', '.join(wrong)[:200]}"] if wrong else []


def _is_header(name: str, text: object) -> bool:
    return _HEADER_NAME.fullmatch(name) is not None and isinstance(text, str) and text.isascii() and text.isprintable()


def _mode(name: str | None) -> ApprovalMode | None:
    return next((mode for mode in FREEDOM if mode == name), None)


def _is_freer(mode: ApprovalMode, other: ApprovalMode) -> bool:
    return FREEDOM.index(mode) > FREEDOM.index(other)


def _without_yolo(mode: ApprovalMode) -> ApprovalMode:
    return ApprovalMode.DEFAULT if mode is ApprovalMode.YOLO else mode


def _may_allow_tools(rule: SettingsRule) -> bool:
    return rule.may_widen and rule.max_approval_mode is ApprovalMode.YOLO
