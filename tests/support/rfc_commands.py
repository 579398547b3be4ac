"""Slash commands of the A2A development-tool extension, read strictly by the words of its RFC (section 3.3)."""

from dataclasses import dataclass
from enum import StrEnum

from support.rfc_events import read_enum, read_field, read_list, read_name, read_object


class CommandStatus(StrEnum):
    """Names of CommandExecutionStatus, without the unspecified value."""

    STARTED = "STARTED"
    FAILED_TO_START = "FAILED_TO_START"
    AWAITING_SHELL_CONFIRMATION = "AWAITING_SHELL_CONFIRMATION"
    AWAITING_ACTION_CONFIRMATION = "AWAITING_ACTION_CONFIRMATION"


@dataclass(frozen=True)
class SlashCommand:
    """A slash command; its arguments are (name, description, is_required)."""

    name: str
    description: str
    arguments: tuple[tuple[str, str, bool], ...]
    sub_commands: tuple["SlashCommand", ...]


@dataclass(frozen=True)
class CommandStart:
    """An ExecuteSlashCommandResponse; the execution id is a task's id, and is empty where nothing started."""

    execution_id: str
    status: CommandStatus
    message: str


def read_start(value: object) -> CommandStart:
    """Return an ExecuteSlashCommandResponse."""
    what = "ExecuteSlashCommandResponse"
    fields = {"message": ""} | read_object(value, what, "execution_id status message")
    status = read_enum(fields, "status", CommandStatus, what)
    if status is CommandStatus.FAILED_TO_START:
        fields = {"execution_id": ""} | fields
    else:
        read_name(fields, "execution_id", what)
    return CommandStart(read_field(fields, "execution_id", str, what), status, read_field(fields, "message", str, what))


def read_commands(value: object) -> tuple[SlashCommand, ...]:
    """Return the commands of a GetAllSlashCommandsResponse."""
    fields = read_object(value, "GetAllSlashCommandsResponse", "commands")
    return tuple(_read_command(each) for each in read_list(fields, "commands", "GetAllSlashCommandsResponse"))


def _read_command(value: object) -> SlashCommand:
    fields = read_object(value, "SlashCommand", "name description arguments sub_commands")
    arguments: list[tuple[str, str, bool]] = []
    for item in read_list(fields, "arguments", "SlashCommand"):
        what = "SlashCommandArgument"
        argument = {"is_required": False} | read_object(item, what, "name description is_required")
        text = read_field(argument, "description", str, what)
        arguments.append((read_name(argument, "name", what), text, read_field(argument, "is_required", bool, what)))
    return SlashCommand(
        read_name(fields, "name", "SlashCommand"),
        read_field(fields, "description", str, "SlashCommand"),
        tuple(arguments),
        tuple(_read_command(each) for each in read_list(fields, "sub_commands", "SlashCommand")),
    )
