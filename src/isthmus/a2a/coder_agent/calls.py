"""Encoder of tool calls in the dialect ``coderAgent``: the objects of Gemini CLI's tool scheduler. Pure.

:mod:`isthmus.a2a.coder_agent.encoder` decides when each state is sent.
"""

import re
from typing import assert_never

from isthmus.a2a.coder_agent.tools import describe_tool
from isthmus.a2a.coder_agent.vocabulary import CallStatus
from isthmus.a2a.wire import JsonDict
from isthmus.development_tool import (
    ConfirmationDetails,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolOutput,
)
from isthmus.encoding.codec import to_json

CANCELLED = "[Operation Cancelled] Reason: User cancelled the operation."
"""Result that gemini-cli-a2a-server gives the model for a call that a user refused."""

_SEPARATORS = re.compile(r"&&|\|\||[;|&\n]")
_ASSIGNMENT = re.compile(r"^\w+=")


def encode_call(
    call: ToolCall, status: CallStatus, prompt_id: str, proposal: ConfirmationDetails | None = None
) -> JsonDict:
    """Return a call in one state of the scheduler; ``proposal`` is the question that the user of a refused call saw."""
    encoded: JsonDict = {
        "request": {
            "callId": call.tool_call_id,
            "name": call.tool_name,
            "args": call.input_parameters,
            "isClientInitiated": False,
            "prompt_id": prompt_id,
        },
        "status": status.value,
    }
    match status:
        case CallStatus.AWAITING_APPROVAL:
            asked = call.confirmation_request
            encoded["confirmationDetails"] = _details(call, asked.details if asked is not None else None)
        case CallStatus.SUCCESS:
            encoded["response"] = _success(call, call.output or ToolOutput())
        case CallStatus.ERROR:
            encoded["response"] = _error(call)
        case CallStatus.CANCELLED:
            encoded["response"] = _cancelled(call, proposal)
        case CallStatus.VALIDATING | CallStatus.SCHEDULED | CallStatus.EXECUTING:
            pass
        case _:
            assert_never(status)
    encoded["tool"] = describe_tool(call)
    return encoded


def root_commands(command: str) -> str:
    """Return the programs that a command line runs, each once, separated by ", "; only for display."""
    found: list[str] = []
    for piece in _SEPARATORS.split(command):
        words = [word for word in piece.split() if not _ASSIGNMENT.match(word)]
        if words and (name := words[0].strip("'\"()").rpartition("/")[2]) and name not in found:
            found.append(name)
    return ", ".join(found)


def _details(call: ToolCall, details: ConfirmationDetails | None) -> JsonDict:
    match details:
        case FileDiff() as diff:
            verb = "Write" if call.tool_name == "write_file" else "Edit"
            return {
                "type": "edit",
                "title": f"Confirm {verb}: {diff.file_name}",
                "fileName": diff.file_name,
                "filePath": diff.file_path,
                "fileDiff": diff.formatted_diff or "",
                "originalContent": diff.old_content or "",
                "newContent": diff.new_content,
            }
        case ExecuteDetails(command):
            return {
                "type": "exec",
                "title": "Confirm Shell Command",
                "command": command,
                "rootCommand": root_commands(command),
            }
        case McpDetails(server_name, tool_name):
            return {
                "type": "mcp",
                "title": "Confirm MCP Tool Execution",
                "serverName": server_name,
                "toolName": tool_name,
                "toolDisplayName": f"{tool_name} ({server_name} MCP Server)",
            }
        case GenericDetails(description):
            return _info(call, description)
        case None:
            return _info(call, call.description or "")
        case _:
            assert_never(details)


def _info(call: ToolCall, prompt: str) -> JsonDict:
    return {"type": "info", "title": f"Confirm: {describe_tool(call)['displayName']}", "prompt": prompt}


def _success(call: ToolCall, output: ToolOutput) -> JsonDict:
    if output.diff is not None:
        for_model = f"Changed {output.diff.file_path}."
        shown: object = {**_diff(output.diff), "diffStat": _statistics(output.diff)}
        shown = {**shown, "isNewFile": output.diff.old_content is None}
    elif output.structured_data is not None:
        data = to_json(output).get("structured_data")
        return _response(call, {"output": data}, None, 0)
    else:
        for_model = shown = output.text or ""
    return _response(call, {"output": for_model}, shown, len(for_model))


def _error(call: ToolCall) -> JsonDict:
    error = call.error
    message = error.message if error is not None else "The tool failed."
    response = _response(call, {"error": message}, message, len(message))
    response["error"] = {"message": message}
    response["errorType"] = (error.type if error is not None else None) or "execution_failed"
    return response


def _cancelled(call: ToolCall, proposal: ConfirmationDetails | None) -> JsonDict:
    shown = _diff(proposal) if isinstance(proposal, FileDiff) else None
    return _response(call, {"error": CANCELLED}, shown, len(CANCELLED))


def _response(call: ToolCall, for_model: JsonDict, shown: object, length: int) -> JsonDict:
    function = {"id": call.tool_call_id, "name": call.tool_name, "response": for_model}
    response: JsonDict = {"callId": call.tool_call_id, "responseParts": [{"functionResponse": function}]}
    if shown is not None:
        response["resultDisplay"] = shown
    response["contentLength"] = length
    return response


def _diff(diff: FileDiff) -> JsonDict:
    return {
        "fileDiff": diff.formatted_diff or "",
        "fileName": diff.file_name,
        "filePath": diff.file_path,
        "originalContent": diff.old_content or "",
        "newContent": diff.new_content,
    }


def _statistics(diff: FileDiff) -> JsonDict:
    """Return the numbers of lines and characters in a diff, all as the model's: the user's own are not known."""
    lines = (diff.formatted_diff or "").splitlines()
    added = [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]
    removed = [line[1:] for line in lines if line.startswith("-") and not line.startswith("---")]
    return {
        "model_added_lines": len(added),
        "model_removed_lines": len(removed),
        "model_added_chars": sum(map(len, added)),
        "model_removed_chars": sum(map(len, removed)),
        "user_added_lines": 0,
        "user_removed_lines": 0,
        "user_added_chars": 0,
        "user_removed_chars": 0,
    }
