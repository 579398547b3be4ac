"""An agent's slash commands as a tree: ``memory show`` and ``git:commit`` are commands below others. Pure."""

import re
from collections.abc import Mapping, Sequence

from isthmus.acp.v1.updates import AvailableCommand
from isthmus.development_tool import SlashCommand, SlashCommandArgument

MAXIMUM_NAME = 100
MAXIMUM_DESCRIPTION = 1000
_SEPARATOR = re.compile(r"[\s:]+")


def path_of(name: str) -> tuple[str, ...]:
    """Return the path of a command in the tree."""
    return tuple(word for word in _SEPARATOR.split(name.removeprefix("/")) if word)


def command_tree(commands: Sequence[AvailableCommand]) -> tuple[SlashCommand, ...]:
    """Return the commands as a tree; of two with the same path the first one counts."""
    by_path: dict[tuple[str, ...], AvailableCommand] = {}
    for item in commands:
        if path_of(item.name) and len(item.name) <= MAXIMUM_NAME:
            by_path.setdefault(path_of(item.name), item)
    return _below((), by_path)


def _below(above: tuple[str, ...], commands: Mapping[tuple[str, ...], AvailableCommand]) -> tuple[SlashCommand, ...]:
    depth = len(above)
    names = dict.fromkeys(path[depth] for path in commands if len(path) > depth and path[:depth] == above)
    return tuple(_command((*above, name), commands) for name in names)


def _command(path: tuple[str, ...], commands: Mapping[tuple[str, ...], AvailableCommand]) -> SlashCommand:
    item = commands.get(path)
    hint = item.input.hint if item is not None and item.input is not None else None
    arguments = () if hint is None else (SlashCommandArgument("text", hint[:MAXIMUM_DESCRIPTION]),)
    described = item.description[:MAXIMUM_DESCRIPTION] if item is not None else ""
    return SlashCommand(path[-1], described, arguments, _below(path, commands))


def prompt_text(path: Sequence[str], args: str, commands: Sequence[AvailableCommand]) -> str:
    """Return the prompt that executes a command: its own name, or its path with spaces if the agent named none."""
    own = next((item.name for item in commands if path_of(item.name) == tuple(path)), " ".join(path))
    return f"/{own.removeprefix('/')} {args}".rstrip()
