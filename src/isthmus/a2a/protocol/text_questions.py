"""Pending tool calls as text questions, and their answers in text, for clients that do not speak the extension."""

import json
from collections.abc import Sequence

from isthmus.client import ELICITATION
from isthmus.development_tool import (
    ConfirmationRequest,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallConfirmation,
)
from isthmus.forms.asked_question import ASK_USER
from isthmus.text.visible import visible


def question_text(call: ToolCall) -> str:
    """Return the question that a pending call asks the user, with the possible answers; nothing in it is hidden."""
    request = call.confirmation_request
    lines = [_action(call, request)]
    if request is not None and request.options:
        choices = ", ".join(f"{option.id} ({option.name})" for option in request.options)
        lines.append(
            f"Answer with one of: {choices}; or with a data part "
            f'{{"tool_call_id": "{call.tool_call_id}", "selected_option_id": "..."}}.'
        )
    return visible("\n".join(lines))


def answer_in_text(text: str, pending: Sequence[ToolCall]) -> ToolCallConfirmation | None:
    """Return the answer in a text that is the id or name of an option, if exactly one call waits; otherwise None."""
    if len(pending) != 1 or pending[0].confirmation_request is None:
        return None
    answer = text.strip().casefold()
    for option in pending[0].confirmation_request.options:
        if answer in (option.id.casefold(), option.name.casefold()):
            return ToolCallConfirmation(pending[0].tool_call_id, option.id)
    return None


def _action(call: ToolCall, request: ConfirmationRequest | None) -> str:
    match request.details if request is not None else None:
        case ExecuteDetails(command, directory):
            return f"May {call.tool_name} run this command{f' in {directory}' if directory else ''}?\n{command}"
        case FileDiff() as document if call.tool_name in (ELICITATION, ASK_USER):
            return f"{call.description or call.tool_name}\n{document.new_content}"
        case FileDiff() as diff:
            return f"May {call.tool_name} change {diff.file_path}?\n{diff.formatted_diff or diff.new_content}"
        case McpDetails(server, tool):
            notes = (call.description or "").strip().split("\n")[1:]
            asked = [f"May the tool {tool} of the MCP server {server} run?", *notes]
            given = [json.dumps(call.input_parameters, ensure_ascii=False)] if call.input_parameters else []
            return "\n".join([*asked, *given])
        case GenericDetails(description) if call.tool_name in (ELICITATION, ASK_USER):
            return description
        case GenericDetails(description):
            return f"May {call.tool_name} go on? {description}"
        case None:
            return f"May {call.tool_name} run?"
