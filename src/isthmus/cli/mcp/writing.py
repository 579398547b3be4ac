"""Writes servers into a settings file, and returns what the user should know about them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from isthmus.cli.mcp.servers import PROJECT, load, named
from isthmus.encoding.jsonc import parse
from isthmus.encoding.jsonc_edit import set_member
from isthmus.mcp_host.config.entry_reader import ServerConfigError
from isthmus.mcp_host.config.server_config import ConfigContext, Origin, ServerConfig, decode_server
from isthmus.mcp_host.config.workspace_config import UnusableServer
from isthmus.programs.setup.setup import BadInputError
from isthmus.settings.edit_file import change_file
from isthmus.settings.keys import MCP_SERVERS


def write_server(path: Path, name: str, entry: Mapping[str, Any]) -> bool:
    """Write an entry of ``mcpServers`` into a settings file; return whether it replaced another one.

    Raises:
        SettingsFileError: the file cannot be changed.
    """
    existed = False

    def change(text: str) -> str:
        nonlocal existed
        existed = name in servers_in(text)
        return set_member(text, [MCP_SERVERS.name, name], dict(entry))

    change_file(path, change)
    return existed


def servers_in(text: str) -> Mapping[str, object]:
    """Return the servers in the text of a settings file; raise JsoncError if it is not JSON."""
    value: object = parse(text) if text.strip("\ufeff \t\r\n") else {}
    servers = cast("dict[str, object]", value).get(MCP_SERVERS.name) if isinstance(value, dict) else None
    return cast("dict[str, object]", servers) if isinstance(servers, dict) else {}


class _AnyVariable(Mapping[str, str]):
    """A stand-in in which every variable is set, so that an entry can be checked before its variables are."""

    def __getitem__(self, key: str) -> str:
        return "https://variable.invalid/"

    def __iter__(self):
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, key: object) -> bool:
        return True


def checked_config(name: str, value: object) -> ServerConfig:
    """Return the configuration of an entry whose variables are not filled in.

    Raises:
        BadInputError: it cannot be used, whatever the variables are.
    """
    folder = Path.cwd()
    try:
        return decode_server(name, value, ConfigContext(Origin.USER, Path("the entry"), folder, _AnyVariable()))
    except ServerConfigError as error:
        raise BadInputError(str(error)) from error


def notes_on(name: str, path: Path, scope: str, *, is_trusted: bool) -> list[str]:
    """Return the reasons why a new server is not used as intended."""
    notes: list[str] = []
    if is_trusted and scope == PROJECT:
        notes.append("trust counts only in your own settings (--scope user); its tools still ask for approval")
    found = named(load(), name)
    if found is None:
        return notes
    source = found.source
    if source is not None and os.path.realpath(source) != os.path.realpath(path):
        notes.append(f"in this folder {source} configures a server of that name, too, and takes precedence")
    elif isinstance(found, UnusableServer):
        notes.append(f"it is not used yet: {found.problem}")
    else:
        notes += [warning for warning in found.warnings if not warning.startswith("trust ")]
    return notes
