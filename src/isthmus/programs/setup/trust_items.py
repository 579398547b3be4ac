"""Describes to the user what a project's files start, reach and set in a folder that they trust, each in one line.

Reads files and blocks; has no other effects. :mod:`isthmus.settings.trust.reading` finds the items.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, assert_never
from urllib.parse import urlsplit

from isthmus.encoding.json_shapes import as_list
from isthmus.record import record
from isthmus.settings.trust.forms import MCP_FILE
from isthmus.settings.trust.items import ItemKind, ProjectItem, hook_command
from isthmus.settings.trust.reading import project_items
from isthmus.text.visible import with_ellipsis

if TYPE_CHECKING:
    from isthmus.mcp_host.config.server_config import ServerConfig

LONGEST_LINE = 2_100
"""Maximum length of a line in characters."""
PROGRAMS = (ItemKind.SERVER, ItemKind.HOOK, ItemKind.COMMAND)
"""Kinds of items that start programs."""
DECIDING = (*PROGRAMS, ItemKind.FOLDER, ItemKind.VARIABLE)
"""Kinds of items because of which the user is asked about a folder; the others are listed beside them."""

_FOLDER_VARIABLES = ("HOME", "OLDPWD", "PWD")
"""Variables that name folders, which servers know anyway."""


@record
class ShownItem:
    """An item, and the line that describes it, without secrets."""

    item: ProjectItem
    line: str

    @property
    def starts_program(self) -> bool:
        """Whether the item starts a program."""
        return self.item.kind in PROGRAMS


def shown_items(folder: Path, home: Path, environment: Mapping[str, str]) -> tuple[ShownItem, ...]:
    """Return the items of a folder's files with their lines, those that start programs first."""
    order = list(ItemKind)
    items = sorted(project_items(folder, home), key=lambda item: order.index(item.kind))
    describe = _Describer(folder, environment)
    return tuple(ShownItem(item, with_ellipsis(describe.line(item), LONGEST_LINE)) for item in items)


def listed(shown: Iterable[ShownItem], start: str, rest: str, only_rest: str) -> Sequence[str]:
    """Return the lines below headings: `start` for programs, `rest` for the others, `only_rest` without programs."""
    found = tuple(shown)
    programs = [f"  - {each.line}" for each in found if each.starts_program]
    others = [f"  - {each.line}" for each in found if not each.starts_program]
    lines = [start, *programs] if programs else []
    return [*lines, rest if programs else only_rest, *others] if others else lines


class _Describer:
    """Describes the items of one folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment

    def line(self, item: ProjectItem) -> str:
        """Return the line of an item."""
        match item.kind:
            case ItemKind.SERVER:
                return f"MCP server {item.name}: {self._server(item)}"
            case ItemKind.HOOK:
                return f"hook {item.name} ({item.file}): {hook_command(item) or '(no command)'}"
            case ItemKind.COMMAND:
                return self._command(item)
            case ItemKind.FOLDER:
                return f"further folder {_real_path(item)} ({item.name} in {item.file})"
            case ItemKind.VARIABLE:
                return f"variable {item.name} ({item.file})"
            case ItemKind.SETTING:
                return f"setting {item.name} ({item.file}): {json.dumps(item.value, ensure_ascii=False)}"
            case ItemKind.SKILL | ItemKind.SUBAGENT:
                return f"{item.kind.value} {item.name} ({item.file})"
            case _:
                assert_never(item.kind)

    def _server(self, item: ProjectItem) -> str:
        from isthmus.mcp_host.config.entry_reader import ServerConfigError
        from isthmus.mcp_host.config.secrets import summary
        from isthmus.mcp_host.config.server_config import ConfigContext, Origin, decode_server

        origin = Origin.MCP_JSON if item.file == MCP_FILE else Origin.PROJECT
        variables = {**self._environment, "PWD": str(self._folder)}
        context = ConfigContext(origin, self._folder / item.file, self._folder, variables)
        try:
            config = decode_server(item.name, item.value, context)
        except ServerConfigError as error:
            return f"(not usable: {error})"
        return "; ".join((*summary(config, self._folder), *_given_variables(config)))

    def _command(self, item: ProjectItem) -> str:
        from isthmus.agent.commands.custom.custom_files import find_custom_commands

        found = find_custom_commands(None, self._folder, ())
        for command in found.commands:
            if command.item == item:
                return f"{command.name} runs: {'; '.join(command.template.shell_texts)}"
        return f"slash command {item.name} ({item.file}), which cannot be read"


def _given_variables(config: "ServerConfig") -> Iterator[str]:
    """Yield a part of a line that names the user's variables that a server gets."""
    from isthmus.mcp_host.config.server_config import HttpEndpoint

    names = ", ".join(name for name, _ in config.variables if name not in _FOLDER_VARIABLES)
    if not names:
        return
    if isinstance(config.endpoint, HttpEndpoint):
        yield f"sends your {names} to {urlsplit(config.endpoint.url).hostname}"
    else:
        yield f"gives the program your {names}"


def _real_path(item: ProjectItem) -> str:
    """Return where a further folder leads."""
    return str(as_list(item.value)[1])
