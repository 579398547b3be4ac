"""Tool calls in the form of ACP: kind, title, places and content. Pure.

A deletion has no form in version 1: its diff has an empty new text, and the title says what happens.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from isthmus.acp.v1.content import TextBlock
from isthmus.acp.v1.updates import (
    AcpCallStatus,
    BlockContent,
    CallContent,
    CallKind,
    DiffContent,
    Location,
    ToolCallState,
)
from isthmus.development_tool import (
    ConfirmationDetails,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)

MAXIMUM_TEXT = 100_000
"""Maximum number of characters of an output that a client is sent; its end says how much was left out."""

_KINDS: Mapping[str, CallKind] = {
    "glob": CallKind.SEARCH,
    "grep_search": CallKind.SEARCH,
    "list_directory": CallKind.READ,
    "read_file": CallKind.READ,
    "read_many_files": CallKind.READ,
    "read_mcp_resource": CallKind.READ,
    "apply_patch": CallKind.EDIT,
    "notebook_edit": CallKind.EDIT,
    "replace": CallKind.EDIT,
    "run_shell_command": CallKind.EXECUTE,
    "search_mcp_tools": CallKind.SEARCH,
    "write_file": CallKind.EDIT,
    "write_todos": CallKind.THINK,
}
_STATUSES: Mapping[ToolCallStatus, AcpCallStatus] = {
    ToolCallStatus.STATUS_UNSPECIFIED: AcpCallStatus.PENDING,
    ToolCallStatus.PENDING: AcpCallStatus.PENDING,
    ToolCallStatus.EXECUTING: AcpCallStatus.IN_PROGRESS,
    ToolCallStatus.SUCCEEDED: AcpCallStatus.COMPLETED,
    ToolCallStatus.FAILED: AcpCallStatus.FAILED,
    ToolCallStatus.CANCELLED: AcpCallStatus.CANCELLED,
}
_PATH_ARGUMENTS = ("file_path", "absolute_path", "path", "dir_path")
_UNNAMED = frozenset({"", *CallKind})
"""Names of calls whose agent does not state one: see :mod:`isthmus.acp.host.calls`."""
_FENCE = re.compile("`{3,}")


def call_state(call: ToolCall, workspace: str) -> ToolCallState:
    """Return all of a tool call; relative paths in its arguments begin in the workspace."""
    return ToolCallState(
        call.tool_call_id,
        title=call.description or call.tool_name,
        kind=_kind(call).value,
        status=_STATUSES[call.status].value,
        content=_content(call) or None,
        locations=_locations(call, workspace) or None,
        raw_input=dict(call.input_parameters) or None,
        raw_output=_raw_output(call.output),
        name=call.tool_name if call.tool_name not in _UNNAMED else None,
    )


def fenced(text: str, language: str = "") -> str:
    """Return text as a block of code in Markdown, in a fence that the text does not contain."""
    longest = max((len(found) for found in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}"


def _details(call: ToolCall) -> ConfirmationDetails | None:
    return call.confirmation_request.details if call.confirmation_request is not None else None


def _kind(call: ToolCall) -> CallKind:
    if (known := _KINDS.get(call.tool_name)) is not None:
        return known
    match _details(call):
        case FileDiff():
            return CallKind.EDIT
        case ExecuteDetails():
            return CallKind.EXECUTE
        case McpDetails() | GenericDetails() | None:
            return CallKind.OTHER


def _content(call: ToolCall) -> tuple[CallContent, ...]:
    """Return the result of a call, or what it prints, or what it wants to do."""
    shown = _shown_code if _kind(call) is CallKind.EXECUTE else _shown_text
    if call.error is not None:
        return _shown_text(call.error.message)
    if call.output is not None:
        match call.output:
            case ToolOutput(diff=FileDiff() as diff):
                return (_diff(diff),)
            case ToolOutput(text=str() as text):
                return shown(text)
            case ToolOutput(structured_data=data):
                return _shown_code(json.dumps(data, ensure_ascii=False, indent=2), "json") if data is not None else ()
    if call.live_content is not None:
        return shown(call.live_content)
    match _details(call):
        case FileDiff() as diff:
            return (_diff(diff),)
        case ExecuteDetails(command, directory, trial):
            place = f"In {directory}:\n" if directory else ""
            shown = _shown_text(f"{place}{fenced(_capped(command), 'sh')}")
            return shown if trial is None else (*shown, BlockContent(TextBlock(fenced(trial.changes, "diff"))))
        case McpDetails(server, tool):
            return _shown_text(f"{tool} of the MCP server {server}")
        case GenericDetails(description):
            return _shown_text(description)
        case None:
            return ()


def _diff(diff: FileDiff) -> DiffContent:
    return DiffContent(diff.file_path, diff.new_content, diff.old_content)


def _shown_text(text: str) -> tuple[CallContent, ...]:
    return (BlockContent(TextBlock(_capped(text))),) if text else ()


def _shown_code(text: str, language: str = "") -> tuple[CallContent, ...]:
    return (BlockContent(TextBlock(fenced(_capped(text), language))),) if text else ()


def _capped(text: str) -> str:
    left = len(text) - MAXIMUM_TEXT
    return text if left <= 0 else f"{text[:MAXIMUM_TEXT]}\n... ({left:,} more characters)"


def _locations(call: ToolCall, workspace: str) -> tuple[Location, ...]:
    asked = call.confirmation_request.file_edit_details if call.confirmation_request is not None else None
    made = call.output.diff if call.output is not None else None
    if (diff := made or asked) is not None:
        return (Location(diff.file_path),)
    if call.tool_name not in _KINDS:
        return ()
    paths = (call.input_parameters.get(name) for name in _PATH_ARGUMENTS)
    path = next((path for path in paths if isinstance(path, str) and path and "\0" not in path), None)
    return (Location(str(Path(workspace, path))),) if path is not None else ()


def _raw_output(output: ToolOutput | None) -> object:
    return dict(output.structured_data) if output is not None and output.structured_data is not None else None
