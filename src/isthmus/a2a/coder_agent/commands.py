"""Names and results of slash commands in the dialect ``coderAgent``. Pure.

A command's name there is its whole path (``"memory show"``), its arguments are a list of words, and its result is one
value.
"""

from collections.abc import Sequence
from typing import Any

from isthmus.development_tool import SlashCommand
from isthmus.events import AgentEvent, AgentMessage, StateChange, TaskState, TextContent

_MESSAGES = ("restore",)
"""Commands whose result is a message object rather than text."""
_SPELLINGS = {"memory": "memory show", "restore list": "restore"}
"""Name of our command for each name that differs on gemini-cli-a2a-server."""
NO_EXTENSIONS = {"name": "extensions list", "data": "No extensions installed."}
"""Result of ``extensions`` and ``extensions list``: Isthmus has no extensions."""


def encode_command(command: SlashCommand, above: str = "") -> dict[str, Any]:
    """Return a command with its sub-commands for ``GET /listCommands``, where names are whole paths."""
    name = f"{above} {command.name}".strip()
    return {
        "name": name,
        "description": command.description,
        "arguments": [
            {"name": argument.name, "description": argument.description, "isRequired": argument.is_required}
            for argument in command.arguments
        ],
        "subCommands": [encode_command(below, name) for below in command.sub_commands],
    }


def find_command(name: str, tree: Sequence[SlashCommand]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the path of a command in the tree, and the words after it, which are its first arguments.

    None if there is no such command. A command with sub-commands takes no arguments.
    """
    words = _SPELLINGS.get(" ".join(name.split()), name).split()
    path: list[str] = []
    level: Sequence[SlashCommand] = tree
    for index, word in enumerate(words):
        found = next((command for command in level if command.name == word), None)
        if found is None:
            is_argument = bool(path) and not level
            return (tuple(path), tuple(words[index:])) if is_argument else None
        path.append(word)
        level = found.sub_commands
    return (tuple(path), ()) if path else None


def encode_result(name: str, task_id: str, events: Sequence[AgentEvent]) -> dict[str, Any] | str:
    """Return ``{name, data}`` for a command with these events, or the reason why it has no result, as text."""
    output = ""
    last: StateChange | None = None
    for event in events:
        match event:
            case TextContent(_, text) | AgentMessage(_, text, was_streamed=False):
                output += text
            case StateChange() as change:
                last = change
            case _:
                pass
    state = last.state if last is not None else None
    is_message = name.split()[0] in _MESSAGES
    if state is TaskState.COMPLETED:
        return {"name": name, "data": _message("info", output) if is_message else output}
    if state is TaskState.INPUT_REQUIRED:
        return (
            f"{name} asks for a confirmation: answer task {task_id} with message/stream"
            " and a data part of callId and outcome, then follow it with tasks/resubscribe"
        )
    reason = (last.error if last is not None else None) or output
    if state is TaskState.FAILED and is_message:
        return {"name": name, "data": _message("error", reason)}
    if state is None or not state.is_terminal:
        return f"{name} continues as task {task_id}; follow it with tasks/resubscribe"
    return reason or f"{name} was {state}"


def _message(kind: str, content: str) -> dict[str, str]:
    return {"type": "message", "messageType": kind, "content": content}
