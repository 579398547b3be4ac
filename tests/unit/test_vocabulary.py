"""Every field and enum member of the development-tool extension, copied from its text and compared with the types."""

from typing import Any

import pytest

from isthmus import development_tool
from isthmus.encoding.codec import from_json, to_json
from support.vocabulary import ENUMS, MESSAGES, example_of, fields_of

FIELDS = [
    pytest.param(
        development_tool.AgentSettings, "workspace_path", "", "string", 1, marks=pytest.mark.requirement("A2A-021")
    ),
    pytest.param(development_tool.ToolCall, "tool_call_id", "", "string", 1, marks=pytest.mark.requirement("A2A-038")),
    pytest.param(
        development_tool.ToolCall, "status", "", "ToolCallStatus", 2, marks=pytest.mark.requirement("A2A-039")
    ),
    pytest.param(development_tool.ToolCall, "tool_name", "", "string", 3, marks=pytest.mark.requirement("A2A-040")),
    pytest.param(
        development_tool.ToolCall, "description", "optional", "string", 4, marks=pytest.mark.requirement("A2A-041")
    ),
    pytest.param(
        development_tool.ToolCall, "input_parameters", "", "Struct", 5, marks=pytest.mark.requirement("A2A-042")
    ),
    pytest.param(
        development_tool.ToolCall, "live_content", "optional", "string", 6, marks=pytest.mark.requirement("A2A-043")
    ),
    pytest.param(development_tool.ToolCall, "output", "", "ToolOutput", 7, marks=pytest.mark.requirement("A2A-046")),
    pytest.param(development_tool.ToolCall, "error", "", "ErrorDetails", 8, marks=pytest.mark.requirement("A2A-047")),
    pytest.param(
        development_tool.ToolCall,
        "confirmation_request",
        "optional",
        "ConfirmationRequest",
        9,
        marks=pytest.mark.requirement("A2A-049"),
    ),
    pytest.param(development_tool.ToolOutput, "text", "", "string", 1, marks=pytest.mark.requirement("A2A-057")),
    pytest.param(development_tool.ToolOutput, "diff", "", "FileDiff", 2, marks=pytest.mark.requirement("A2A-058")),
    pytest.param(
        development_tool.ToolOutput, "structured_data", "", "Struct", 3, marks=pytest.mark.requirement("A2A-059")
    ),
    pytest.param(development_tool.ErrorDetails, "message", "", "string", 1, marks=pytest.mark.requirement("A2A-060")),
    pytest.param(
        development_tool.ErrorDetails, "type", "optional", "string", 2, marks=pytest.mark.requirement("A2A-061")
    ),
    pytest.param(
        development_tool.ErrorDetails, "status_code", "optional", "int32", 3, marks=pytest.mark.requirement("A2A-062")
    ),
    pytest.param(
        development_tool.ConfirmationRequest,
        "options",
        "repeated",
        "ConfirmationOption",
        1,
        marks=pytest.mark.requirement("A2A-063"),
    ),
    pytest.param(
        development_tool.ConfirmationRequest,
        "execute_details",
        "",
        "ExecuteDetails",
        2,
        marks=pytest.mark.requirement("A2A-065"),
    ),
    pytest.param(
        development_tool.ConfirmationRequest,
        "file_edit_details",
        "",
        "FileDiff",
        3,
        marks=pytest.mark.requirement("A2A-066"),
    ),
    pytest.param(
        development_tool.ConfirmationRequest,
        "mcp_details",
        "",
        "McpDetails",
        4,
        marks=pytest.mark.requirement("A2A-067"),
    ),
    pytest.param(
        development_tool.ConfirmationRequest,
        "generic_details",
        "",
        "GenericDetails",
        5,
        marks=pytest.mark.requirement("A2A-068"),
    ),
    pytest.param(development_tool.ConfirmationOption, "id", "", "string", 1, marks=pytest.mark.requirement("A2A-069")),
    pytest.param(
        development_tool.ConfirmationOption, "name", "", "string", 2, marks=pytest.mark.requirement("A2A-070")
    ),
    pytest.param(
        development_tool.ConfirmationOption,
        "description",
        "optional",
        "string",
        3,
        marks=pytest.mark.requirement("A2A-071"),
    ),
    pytest.param(development_tool.ExecuteDetails, "command", "", "string", 1, marks=pytest.mark.requirement("A2A-073")),
    pytest.param(
        development_tool.ExecuteDetails,
        "working_directory",
        "optional",
        "string",
        2,
        marks=pytest.mark.requirement("A2A-074"),
    ),
    pytest.param(development_tool.FileDiff, "file_name", "", "string", 1, marks=pytest.mark.requirement("A2A-075")),
    pytest.param(development_tool.FileDiff, "file_path", "", "string", 2, marks=pytest.mark.requirement("A2A-076")),
    pytest.param(
        development_tool.FileDiff, "old_content", "optional", "string", 3, marks=pytest.mark.requirement("A2A-077")
    ),
    pytest.param(development_tool.FileDiff, "new_content", "", "string", 4, marks=pytest.mark.requirement("A2A-078")),
    pytest.param(
        development_tool.FileDiff, "formatted_diff", "optional", "string", 5, marks=pytest.mark.requirement("A2A-079")
    ),
    pytest.param(development_tool.McpDetails, "server_name", "", "string", 1, marks=pytest.mark.requirement("A2A-080")),
    pytest.param(development_tool.McpDetails, "tool_name", "", "string", 2, marks=pytest.mark.requirement("A2A-081")),
    pytest.param(
        development_tool.GenericDetails, "description", "", "string", 1, marks=pytest.mark.requirement("A2A-082")
    ),
    pytest.param(development_tool.AgentThought, "subject", "", "string", 1, marks=pytest.mark.requirement("A2A-083")),
    pytest.param(
        development_tool.AgentThought, "description", "", "string", 2, marks=pytest.mark.requirement("A2A-084")
    ),
    pytest.param(
        development_tool.DevelopmentToolEvent,
        "kind",
        "",
        "DevelopmentToolEventKind",
        1,
        marks=pytest.mark.requirement("A2A-092"),
    ),
    pytest.param(
        development_tool.DevelopmentToolEvent, "model", "", "string", 2, marks=pytest.mark.requirement("A2A-093")
    ),
    pytest.param(
        development_tool.DevelopmentToolEvent, "user_tier", "", "string", 3, marks=pytest.mark.requirement("A2A-094")
    ),
    pytest.param(
        development_tool.DevelopmentToolEvent, "error", "", "string", 4, marks=pytest.mark.requirement("A2A-095")
    ),
    pytest.param(
        development_tool.ToolCallConfirmation, "tool_call_id", "", "string", 1, marks=pytest.mark.requirement("A2A-101")
    ),
    pytest.param(
        development_tool.ToolCallConfirmation,
        "selected_option_id",
        "",
        "string",
        2,
        marks=pytest.mark.requirement("A2A-102"),
    ),
    pytest.param(
        development_tool.ToolCallConfirmation,
        "file_details",
        "",
        "ModifiedFileDetails",
        3,
        marks=pytest.mark.requirement("A2A-105"),
    ),
    pytest.param(
        development_tool.ModifiedFileDetails, "new_content", "", "string", 1, marks=pytest.mark.requirement("A2A-106")
    ),
    pytest.param(
        development_tool.GetAllSlashCommandsResponse,
        "commands",
        "repeated",
        "SlashCommand",
        1,
        marks=pytest.mark.requirement("A2A-109"),
    ),
    pytest.param(development_tool.SlashCommand, "name", "", "string", 1, marks=pytest.mark.requirement("A2A-110")),
    pytest.param(
        development_tool.SlashCommand, "description", "", "string", 2, marks=pytest.mark.requirement("A2A-111")
    ),
    pytest.param(
        development_tool.SlashCommand,
        "arguments",
        "repeated",
        "SlashCommandArgument",
        3,
        marks=pytest.mark.requirement("A2A-112"),
    ),
    pytest.param(
        development_tool.SlashCommand,
        "sub_commands",
        "repeated",
        "SlashCommand",
        4,
        marks=pytest.mark.requirement("A2A-113"),
    ),
    pytest.param(
        development_tool.SlashCommandArgument, "name", "", "string", 1, marks=pytest.mark.requirement("A2A-114")
    ),
    pytest.param(
        development_tool.SlashCommandArgument, "description", "", "string", 2, marks=pytest.mark.requirement("A2A-115")
    ),
    pytest.param(
        development_tool.SlashCommandArgument, "is_required", "", "bool", 3, marks=pytest.mark.requirement("A2A-116")
    ),
    pytest.param(
        development_tool.ExecuteSlashCommandRequest,
        "command_path",
        "repeated",
        "string",
        1,
        marks=pytest.mark.requirement("A2A-118"),
    ),
    pytest.param(
        development_tool.ExecuteSlashCommandRequest, "args", "", "string", 2, marks=pytest.mark.requirement("A2A-119")
    ),
    pytest.param(
        development_tool.ExecuteSlashCommandResponse,
        "execution_id",
        "",
        "string",
        1,
        marks=pytest.mark.requirement("A2A-128"),
    ),
    pytest.param(
        development_tool.ExecuteSlashCommandResponse,
        "status",
        "",
        "CommandExecutionStatus",
        2,
        marks=pytest.mark.requirement("A2A-129"),
    ),
    pytest.param(
        development_tool.ExecuteSlashCommandResponse,
        "message",
        "",
        "string",
        3,
        marks=pytest.mark.requirement("A2A-130"),
    ),
    # Fields that Isthmus adds, as the document allows.
    pytest.param(development_tool.ConfirmationRequest, "words_option", "optional", "string", 101),
    pytest.param(development_tool.ConfirmationRequest, "wants", "optional", "string", 102),
    pytest.param(development_tool.ConfirmationRequest, "risks", "repeated", "string", 103),
    pytest.param(development_tool.ConfirmationOption, "covers", "optional", "string", 102),
    pytest.param(development_tool.AgentSettings, "mcp_servers", "repeated", "McpServerSettings", 101),
    pytest.param(development_tool.AgentSettings, "allowed_tools", "repeated", "string", 102),
    pytest.param(development_tool.AgentSettings, "model", "optional", "string", 103),
    pytest.param(development_tool.AgentSettings, "approval_mode", "optional", "string", 104),
    pytest.param(development_tool.AgentSettings, "context_files", "repeated", "string", 105),
    pytest.param(development_tool.AgentSettings, "effort", "optional", "string", 106),
    pytest.param(development_tool.AgentSettings, "additional_directories", "repeated", "string", 107),
    pytest.param(development_tool.McpServerSettings, "name", "", "string", 1),
    pytest.param(development_tool.McpServerSettings, "url", "optional", "string", 2),
    pytest.param(development_tool.McpServerSettings, "headers", "optional", "Struct", 3),
    pytest.param(development_tool.McpServerSettings, "command", "optional", "string", 4),
    pytest.param(development_tool.McpServerSettings, "args", "repeated", "string", 5),
    pytest.param(development_tool.McpServerSettings, "env", "optional", "Struct", 6),
    # And one that it adds to options.
    pytest.param(development_tool.ConfirmationOption, "kind", "optional", "string", 101),
    pytest.param(development_tool.ToolOutput, "exit_code", "optional", "int32", 101),
    pytest.param(development_tool.ToolCall, "changed_files", "repeated", "ChangedLines", 101),
    pytest.param(development_tool.ChangedLines, "file_path", "", "string", 1),
    pytest.param(development_tool.ChangedLines, "added", "", "int32", 2),
    pytest.param(development_tool.ChangedLines, "removed", "", "int32", 3),
    pytest.param(development_tool.ExecuteDetails, "trial", "optional", "CommandTrial", 101),
    pytest.param(development_tool.CommandTrial, "id", "", "string", 1),
    pytest.param(development_tool.CommandTrial, "changes", "", "string", 2),
    pytest.param(development_tool.CommandTrial, "files", "repeated", "string", 3),
]
"""Every field as in the extension's text: message, name, label, type, number."""


@pytest.mark.parametrize(("kind", "name", "label", "type_name", "number"), FIELDS)
def test_a_field_is_as_the_document_has_it(
    kind: type[object], name: str, label: str, type_name: str, number: int
) -> None:
    field = next(field for field in fields_of(kind) if field.name == name)
    assert field.number == number
    assert field.repeated == (label == "repeated")
    assert field.optional or label != "optional"
    found = {str: "string", int: "int32", bool: "bool"}.get(field.kind, getattr(field.kind, "__name__", ""))
    assert found == ("Mapping" if type_name == "Struct" else type_name)

    value = example_of(kind, name)
    encoded = to_json(value)
    assert name in encoded
    assert getattr(from_json(kind, {name: encoded[name], **encoded}), name) == getattr(value, name)


MEMBERS = [
    pytest.param(development_tool.ToolCallStatus, "STATUS_UNSPECIFIED", 0, marks=pytest.mark.requirement("A2A-050")),
    pytest.param(development_tool.ToolCallStatus, "PENDING", 1, marks=pytest.mark.requirement("A2A-051")),
    pytest.param(development_tool.ToolCallStatus, "EXECUTING", 2, marks=pytest.mark.requirement("A2A-052")),
    pytest.param(development_tool.ToolCallStatus, "SUCCEEDED", 3, marks=pytest.mark.requirement("A2A-053")),
    pytest.param(development_tool.ToolCallStatus, "FAILED", 4, marks=pytest.mark.requirement("A2A-054")),
    pytest.param(development_tool.ToolCallStatus, "CANCELLED", 5, marks=pytest.mark.requirement("A2A-055")),
    pytest.param(
        development_tool.DevelopmentToolEventKind,
        "DEVELOPMENT_TOOL_EVENT_KIND_UNSPECIFIED",
        0,
        marks=pytest.mark.requirement("A2A-086"),
    ),
    pytest.param(
        development_tool.DevelopmentToolEventKind, "TOOL_CALL_CONFIRMATION", 1, marks=pytest.mark.requirement("A2A-087")
    ),
    pytest.param(
        development_tool.DevelopmentToolEventKind, "TOOL_CALL_UPDATE", 2, marks=pytest.mark.requirement("A2A-088")
    ),
    pytest.param(
        development_tool.DevelopmentToolEventKind, "TEXT_CONTENT", 3, marks=pytest.mark.requirement("A2A-089")
    ),
    pytest.param(
        development_tool.DevelopmentToolEventKind, "STATE_CHANGE", 4, marks=pytest.mark.requirement("A2A-090")
    ),
    pytest.param(development_tool.DevelopmentToolEventKind, "THOUGHT", 5, marks=pytest.mark.requirement("A2A-091")),
    pytest.param(
        development_tool.CommandExecutionStatus,
        "COMMAND_EXECUTION_STATUS_UNSPECIFIED",
        0,
        marks=pytest.mark.requirement("A2A-123"),
    ),
    pytest.param(development_tool.CommandExecutionStatus, "STARTED", 1, marks=pytest.mark.requirement("A2A-124")),
    pytest.param(
        development_tool.CommandExecutionStatus, "FAILED_TO_START", 2, marks=pytest.mark.requirement("A2A-125")
    ),
    pytest.param(
        development_tool.CommandExecutionStatus,
        "AWAITING_SHELL_CONFIRMATION",
        3,
        marks=pytest.mark.requirement("A2A-126"),
    ),
    pytest.param(
        development_tool.CommandExecutionStatus,
        "AWAITING_ACTION_CONFIRMATION",
        4,
        marks=pytest.mark.requirement("A2A-127"),
    ),
]
"""Every enum member as in the extension's text."""


@pytest.mark.parametrize(("kind", "name", "number"), MEMBERS)
def test_an_enum_member_is_as_the_document_has_it(kind: Any, name: str, number: int) -> None:
    assert kind[name].value == number
    assert kind(number).name == name


def test_no_field_or_member_is_missing_in_those_tables() -> None:
    stated = {(case.values[0], case.values[1]) for case in FIELDS}
    assert {(kind, field.name) for kind in MESSAGES for field in fields_of(kind)} == stated
    stated = {(case.values[0], case.values[1]) for case in MEMBERS}
    assert {(kind, member.name) for kind in ENUMS for member in kind} == stated
