"""Finds custom commands: ``commands/**/*.toml`` in the user's folder and in the project's ``.gemini``.

Extensions of the user have commands, too. Sub-folders are namespaces. A command of the project overrides a command of
the user with the same name, and both override one of an extension; a custom command with the name of a built-in one is
renamed. An unusable file is reported and does not affect the others.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from isthmus.agent.commands.custom.command_toml import read_toml
from isthmus.agent.commands.custom.custom import CustomCommand, node_of
from isthmus.agent.commands.custom.template import TemplateError, parse
from isthmus.agent.commands.port.base import CommandNode
from isthmus.files.atomic import read_regular
from isthmus.record import record
from isthmus.settings.extensions import find_extensions
from isthmus.settings.trust.reading import command_item
from isthmus.text.visible import single_line

MAXIMUM_FILES = 500
"""Maximum number of files in a folder of commands and its sub-folders."""
MAXIMUM_FOLDERS = 500
MAXIMUM_BYTES = 256 * 1024
"""Maximum size in bytes of one command."""
MAXIMUM_TOTAL_BYTES = 1024 * 1024
"""Maximum size in bytes of all commands of one folder, so that no project can make each start take minutes."""


@record
class CustomCommands:
    """The commands found, also as nodes for the tree; ``problems`` report unused files and renamed commands."""

    nodes: tuple[CommandNode, ...] = ()
    problems: tuple[str, ...] = ()
    commands: tuple[CustomCommand, ...] = ()


def find_custom_commands(
    home: Path | None, workspace: Path, built_in: Sequence[CommandNode], *, of_project: bool = True
) -> CustomCommands:
    """Return the custom commands for a workspace; ``home`` is the user's ``~/.gemini``.

    Without ``of_project`` those of the workspace itself are left out.

    Blocking; call it in a thread.
    """
    problems: list[str] = []
    found: dict[tuple[str, ...], CustomCommand] = {}
    own = home / "commands" if home is not None else None
    projects = workspace / ".gemini" / "commands"
    folders: list[tuple[str, Path, Path | None]] = [
        (extension.name, extension.folder / "commands", None)
        for extension in (find_extensions(home.parent, workspace).enabled if home is not None else ())
    ]
    folders += [("user", own, None)] if own is not None else []
    if of_project and (own is None or _real(projects) != _real(own)):
        folders.append(("project", projects, _real(workspace)))
    taken = {node.name for node in built_in}
    for whose, folder, root in folders:
        for path in _files(folder, root, problems):
            command = _read(path, folder, problems, project=workspace if root is not None else None)
            if command is None:
                continue
            if command.path[0] in taken:
                renamed = replace(command, path=(f"{whose}.{command.path[0]}", *command.path[1:]))
                problems.append(f"{path}: {command.name} is named {renamed.name}, since /{command.path[0]} is built in")
                command = renamed
            found[command.path] = command
    return CustomCommands(_tree(found.values()), tuple(problems), tuple(found.values()))


def _files(folder: Path, root: Path | None, problems: list[str]) -> Iterator[Path]:
    """Yield the TOML files below a folder by name; with ``root``, only files inside it."""
    count = total = 0
    for visited, (current, folders, names) in enumerate(os.walk(folder)):
        folders.sort()
        if visited >= MAXIMUM_FOLDERS:
            problems.append(f"{folder}: only the first {MAXIMUM_FOLDERS} folders are searched")
            return
        for name in sorted(names):
            path = Path(current) / name
            if not name.endswith(".toml"):
                continue
            count += 1
            if count > MAXIMUM_FILES:
                problems.append(f"{folder}: only the first {MAXIMUM_FILES} commands are used")
                return
            total += min(_size(path), MAXIMUM_BYTES)
            if total > MAXIMUM_TOTAL_BYTES:
                problems.append(f"{folder}: only the first {MAXIMUM_TOTAL_BYTES} bytes of commands are used")
                return
            if root is not None and not _real(path).is_relative_to(root):
                problems.append(f"{path} is not used: it leads out of the project")
                continue
            yield path


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _real(path: Path) -> Path:
    """Return the resolved path, as far as possible if links lead in a circle (Path.resolve would fail)."""
    return Path(os.path.realpath(path))


def _read(path: Path, folder: Path, problems: list[str], *, project: Path | None) -> CustomCommand | None:
    """Return the command in a file, of the project if there is one."""
    try:
        content = read_regular(path, MAXIMUM_BYTES)
        values = read_toml(content.decode("utf-8"))
        prompt, description = _text(values, "prompt"), _text(values, "description")
        if prompt is None or not prompt.strip():
            raise ValueError('expected a text under "prompt"')
        template = parse(prompt)
    except (OSError, ValueError, TemplateError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else error
        problems.append(f"{path} is not used: {reason}")
        return None
    parts = path.relative_to(folder).with_suffix("").parts
    names = tuple(re.sub(r"[\s:/\x00-\x1f]", "_", part) for part in parts)
    text = description or f"Custom command from {path.name}"
    shown = " ".join(single_line(text).split())
    item = None if project is None else command_item(project, path, content)
    return CustomCommand(names, shown, template, path, project is not None, item)


def _text(values: dict[str, Any], key: str) -> str | None:
    value: object = values.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f'expected a text under "{key}", found {type(value).__name__}')
    return value


@dataclass(slots=True)
class _Place:
    command: CustomCommand | None = None
    below: "dict[str, _Place]" = field(default_factory=dict[str, "_Place"])


def _tree(commands: Iterable[CustomCommand]) -> tuple[CommandNode, ...]:
    top = _Place()
    for command in commands:
        place = top
        for name in command.path:
            place = place.below.setdefault(name, _Place())
        place.command = command
    return _nodes(top)


def _nodes(place: _Place) -> tuple[CommandNode, ...]:
    nodes: list[CommandNode] = []
    for name, inner in sorted(place.below.items()):
        below = _nodes(inner)
        if inner.command is not None:
            nodes.append(node_of(inner.command, below))
        else:
            nodes.append(CommandNode(name, f"Custom commands in {name}", None, (), below))
    return tuple(nodes)
