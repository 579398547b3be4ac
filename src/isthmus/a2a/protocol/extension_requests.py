"""AgentSettings and slash commands in requests, which the development-tool extension adds to every version of A2A.

Answers to questions are parts of messages and are read in :mod:`isthmus.a2a.protocol.message_decoder`.
"""

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from isthmus.a2a.protocol.extension import URI, Activation, envelope
from isthmus.a2a.protocol.jsonrpc import InvalidParamsError
from isthmus.a2a.protocol.operations import ExecuteCommand, GetSessionStatus, ListCommands, Operation
from isthmus.a2a.protocol.parameters import mapping, message_of, optional_id, optional_mapping
from isthmus.a2a.wire import Call
from isthmus.client import CommandMessage, CommandScope
from isthmus.development_tool import AgentSettings, ExecuteSlashCommandRequest, decode_agent_settings
from isthmus.encoding.codec import JsonObject, camel
from isthmus.errors import DecodeError

COMMANDS = "commands/get"
EXECUTE = "command/execute"
LIST = "isthmus/tasks"
"""Our own method, since 0.3 has none: ``{"limit": 100}`` -> ``{"tasks": [Task, ...]}``.

The tasks are without history, most recently changed first.
"""

STATUS = "isthmus/session"
"""Our own method: the members of :class:`~isthmus.session_status.SessionStatus` that are known.

It takes the scope of ``commands/get``.
"""
SCOPED = (COMMANDS, EXECUTE, STATUS)
"""Methods in the scope of a session, whose clients speak the extension."""

METHODS = (*SCOPED, LIST)
"""Methods that belong to no version of A2A."""

_SETTINGS_NAMES = {
    camel(name): name for name in ("workspace_path", "mcp_servers", "allowed_tools", "approval_mode", "context_files")
}
_FIELDS = {item.name for item in fields(AgentSettings)}
_ANSWERED_BY_LIMIT = 80
_SCOPE_NAMES = ("taskId", "contextId", "task_id", "context_id")


def extended_object(
    params: Mapping[str, Any], message: Mapping[str, Any] | None, activation: Activation
) -> Mapping[str, Any] | None:
    """Return the extension's object in the metadata of the message or of the request.

    Raises:
        InvalidParamsError: the metadata, or its value for the extension's URI, is not an object.
    """
    for holder, where in ((message, "params.message"), (params, "params")):
        if holder is None or holder.get("metadata") is None:
            continue
        metadata = mapping(holder, "metadata", where)
        if activation.uri is None:
            continue
        if activation.uri in metadata and not isinstance(metadata[activation.uri], Mapping):
            raise InvalidParamsError(f'{where}.metadata["{activation.uri}"]', "expected an object")
        found = envelope(metadata, activation.uri)
        if found is not None:
            return found
    return None


def settings_of(extended: Mapping[str, Any] | None, activation: Activation, is_first: bool) -> JsonObject | None:
    """Return the AgentSettings of a message; they are required in the first message of a session.

    A later message may change single fields.

    Raises:
        InvalidParamsError: they are missing, or a value is invalid; the text names the key.
    """
    if activation.uri is None:
        return None
    where = f'params.message.metadata["{activation.uri}"]'
    if extended is None:
        if is_first:
            raise InvalidParamsError(
                where, "expected AgentSettings with workspace_path, which the first message of a session must have"
            )
        return None
    settings = checked_settings(extended, where, needs_workspace=is_first)
    return settings if settings.keys() & _FIELDS else None


def checked_settings(extended: Mapping[str, Any], where: str, *, needs_workspace: bool) -> Mapping[str, Any]:
    """Return AgentSettings under their names in snake_case, after checking the types and that the path is absolute.

    Raises:
        InvalidParamsError: a value is invalid; the text names the key.
    """
    settings = {_SETTINGS_NAMES.get(key, key): value for key, value in extended.items()}
    try:
        path = decode_agent_settings(settings if needs_workspace else {"workspace_path": "/", **settings}, where)
    except DecodeError as error:
        of_path = ", an absolute path" if error.path.endswith("workspace_path") else ""
        raise InvalidParamsError(error.path, f"expected {error.expected}{of_path}") from error
    workspace = path.workspace_path
    if not os.path.isabs(workspace) or "\0" in workspace:  # noqa: PTH117 - each task comes here; pathlib is slow
        raise InvalidParamsError(f"{where}.workspace_path", f"expected an absolute path, received {workspace[:200]!r}")
    return settings


def answered_by_of(extended: Mapping[str, Any] | None) -> str | None:
    """Return the client's name for the place where its user answers, without control characters: terminals show it."""
    value = extended.get("answered_by") if extended is not None else None
    if not isinstance(value, str):
        return None
    return "".join(character for character in value if character.isprintable()).strip()[:_ANSWERED_BY_LIMIT] or None


def decode_commands(call: Call) -> Operation:
    """Return the operation of a request of ``commands/get``, ``command/execute`` or ``isthmus/session``.

    Raises:
        InvalidParamsError: a parameter is invalid.
    """
    scope = _scope(call)
    if call.method == COMMANDS:
        return ListCommands(scope)
    if call.method == STATUS:
        return GetSessionStatus(scope)
    asked = message_of(ExecuteSlashCommandRequest, call.params, "params")
    command = CommandMessage(asked.command_path, asked.args, scope, extension=call.activation.uri or URI)
    return ExecuteCommand(command, call.wants_stream)


def _scope(call: Call) -> CommandScope:
    """Return the scope of a command, whose metadata may name a task, a session, or AgentSettings."""
    activation = call.activation if call.activation.active else Activation(URI)
    extended = extended_object(call.params, None, activation)
    metadata = optional_mapping(call.params, "metadata", "params") or {}
    names: dict[str, str | None] = {}
    for holder, where in ((metadata, "params.metadata"), (extended or {}, f'params.metadata["{activation.uri}"]')):
        for name in _SCOPE_NAMES:
            value = optional_id(holder, name, where)
            if value is not None:
                names.setdefault(camel(name), value)
    settings = {key: value for key, value in (extended or {}).items() if key not in _SCOPE_NAMES}
    checked = None
    if settings:
        checked = checked_settings(settings, f'params.metadata["{activation.uri}"]', needs_workspace=False)
    return CommandScope(names.get("taskId"), names.get("contextId"), checked)
