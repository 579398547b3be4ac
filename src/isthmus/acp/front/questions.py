"""Questions to the user: tool calls that wait, as permission requests or forms, and the answers. Pure."""

import json
import os
from pathlib import Path
from typing import TypeAlias

from isthmus.acp.front.tool_calls import call_state
from isthmus.acp.v1.client_requests import (
    CancelledOutcome,
    ElicitationResponse,
    FormElicitation,
    PermissionKind,
    PermissionOption,
    PermissionRequest,
    PermissionResponse,
    Selected,
    UrlElicitation,
)
from isthmus.acp.v1.connection import ElicitationCapabilities
from isthmus.development_tool import ConfirmationOption, ModifiedFileDetails, ToolCall, ToolCallConfirmation
from isthmus.encoding.codec import from_json
from isthmus.encoding.json_shapes import as_object, as_text, is_object
from isthmus.forms.asked_question import question_in
from isthmus.forms.requested_schema import REQUESTED_SCHEMA, requested_schema
from isthmus.questions import ACCEPTING_OPTIONS, ELICITATION, offered_option
from isthmus.record import record


@record
class CommandPermission(PermissionRequest):
    """A permission request for a command in a folder, an absolute path; version 1 shows both in the call alone."""

    command: str
    cwd: str


ClientQuestion: TypeAlias = PermissionRequest | FormElicitation | UrlElicitation

_REFUSALS = ("cancel", "decline")
_ACTIONS = ("accept", *_REFUSALS)


def question_of(call: ToolCall, session_id: str, workspace: str, shows: ElicitationCapabilities) -> ClientQuestion:
    """Return the request that asks the user about a call: a form or a page if the client can show it."""
    if (elicitation := _elicitation(call, session_id, shows)) is not None:
        return elicitation
    asked = call.confirmation_request
    options = tuple(_option(item) for item in asked.options) if asked is not None else ()
    # All of the call, since a client may know nothing of it yet.
    state = call_state(call, workspace)
    if asked is not None and (execute := asked.execute_details) is not None:
        folder = Path(workspace, execute.working_directory or "")
        return CommandPermission(session_id, state, options, execute.command, os.path.normpath(folder))
    return PermissionRequest(session_id, state, options)


def answer_of(question: ClientQuestion, call: ToolCall, result: object) -> ToolCallConfirmation | None:
    """Return the user's answer; None if the client has cancelled the turn instead.

    Raises:
        DecodeError: the result is not an answer.
    """
    if isinstance(question, PermissionRequest):
        response = from_json(PermissionResponse, result)
        match response.outcome:
            case CancelledOutcome():
                return None
            case Selected(option_id):
                edited = _edited(response) if _is_edit(call) else None
                details = ModifiedFileDetails(edited) if edited is not None else None
                return ToolCallConfirmation(call.tool_call_id, option_id, details)
    answer = from_json(ElicitationResponse, result)
    action = answer.action if answer.action in _ACTIONS else "cancel"
    if question_in(call) is not None:  # It has the options of our own questions.
        action = offered_option(call, ACCEPTING_OPTIONS, "allow_once") if action == "accept" else "cancel"
    if isinstance(question, UrlElicitation) or action in _REFUSALS:
        return ToolCallConfirmation(call.tool_call_id, action)
    document = json.dumps(answer.content or {}, ensure_ascii=False, indent=2) + "\n"
    return ToolCallConfirmation(call.tool_call_id, action, ModifiedFileDetails(document))


def _elicitation(call: ToolCall, session_id: str, shows: ElicitationCapabilities) -> ClientQuestion | None:
    about = call.input_parameters
    asked = question_in(call)
    if asked is not None and asked.form is not None and shows.form is not None and _is_edit(call):
        return FormElicitation(asked.text, {**requested_schema(asked.form)}, session_id, call.tool_call_id)
    if call.tool_name != ELICITATION:
        return None
    message, server = as_text(about.get("message")), as_text(about.get("server"))
    text = f"The MCP server {server} asks: {message}" if server else message
    schema, url = about.get(REQUESTED_SCHEMA), about.get("url")
    if shows.form is not None and is_object(schema) and _is_edit(call):
        return FormElicitation(text, schema, session_id, call.tool_call_id)
    if shows.url is not None and isinstance(url, str):
        return UrlElicitation(text, url, call.tool_call_id, session_id, call.tool_call_id)
    return None


def _is_edit(call: ToolCall) -> bool:
    return call.confirmation_request is not None and call.confirmation_request.file_edit_details is not None


def _edited(response: PermissionResponse) -> str | None:
    """Return the file's content after the user's own edits, from a client that knows our member for it."""
    inner = response.outcome.meta if isinstance(response.outcome, Selected) else None
    for meta in (response.meta, inner):
        content = as_object(as_object(meta).get("isthmus")).get("newContent")
        if isinstance(content, str):
            return content
    return None


def _option(option: ConfirmationOption) -> PermissionOption:
    return PermissionOption(option.id, option.name, option.kind or _kind_by_id(option.id).value)


def _kind_by_id(option_id: str) -> PermissionKind:
    if option_id in _REFUSALS or option_id.startswith(("reject", "deny")):
        return PermissionKind.REJECT_ALWAYS if option_id.endswith("always") else PermissionKind.REJECT_ONCE
    return PermissionKind.ALLOW_ALWAYS if "always" in option_id else PermissionKind.ALLOW_ONCE
