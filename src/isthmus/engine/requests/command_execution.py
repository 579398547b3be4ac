"""Slash commands as tasks: checks a command against the command tree and reports how its execution began. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from isthmus.client import CommandMessage
from isthmus.development_tool import CommandExecutionStatus, SlashCommand, ToolCall
from isthmus.events import Command, TaskState
from isthmus.slash_commands.tree import command_line, find, missing_argument, near, usage_of


def format_command(command: CommandMessage | Command) -> str:
    """Return the command as a user types it: ``/memory add ...``."""
    return " ".join(["/" + " ".join(command.path), *([command.args] if command.args else [])])


def resolve_command(command: CommandMessage, tree: Sequence[SlashCommand]) -> CommandMessage:
    """Return the command with its path in the tree, whatever its spelling: an alias, ``git:commit``, ``/memory``."""
    line = command_line(command.path, command.args, tree)
    return replace(command, path=line.path, args=line.args)


def refusal(command: CommandMessage, tree: Sequence[SlashCommand]) -> str | None:
    """Return the reason why a resolved command cannot start, with similar commands; None if it can."""
    if not command.path or not any(name.strip() for name in command.path):
        return 'command_path is empty; expected the names of a command, such as ["memory", "show"].'
    shown = "/" + " ".join(command.path)[:100].removeprefix("/")
    found = find(command.path, tree)
    if found is None:
        likely = near(command.path, tree)
        meant = f" Did you mean {' or '.join(likely)}?" if likely else ""
        lists = find(("help",), tree) is not None
        helped = " /help lists them, and names custom ones that cannot be used." if lists else ""
        return f"There is no command {shown}.{meant}{helped if tree else ' This agent has no commands.'}"
    if missing_argument(found, command.args) is not None:
        required = [item for item in found.arguments if item.is_required]
        needs = "; ".join(f"{item.name}: {item.description}" if item.description else item.name for item in required)
        usage = usage_of(found)
        return f"{shown} needs {needs}" + (f" - Usage: {shown}{usage}" if usage else "")
    return None


def refusal_without_folder(command: CommandMessage) -> str:
    """Return the reason why a command cannot start in a session that has no folder."""
    return (
        f"/{' '.join(command.path)} needs a folder: send AgentSettings with workspace_path, the absolute path of the"
        " session's workspace, in the metadata of the request."
    )


def start_status(state: TaskState, pending: Sequence[ToolCall]) -> CommandExecutionStatus:
    """Return the status of an execution whose task's first state is ``state``."""
    if state is not TaskState.INPUT_REQUIRED:
        return CommandExecutionStatus.STARTED
    requests = [call.confirmation_request for call in pending if call.confirmation_request is not None]
    if any(request.execute_details is not None for request in requests):
        return CommandExecutionStatus.AWAITING_SHELL_CONFIRMATION
    return CommandExecutionStatus.AWAITING_ACTION_CONFIRMATION
