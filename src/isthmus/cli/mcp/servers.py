"""Helpers of the commands of ``isthmus mcp``: the configured servers, their files, and advice on unknown names."""

import difflib
import os
from pathlib import Path

import click

from isthmus.errors import IsthmusError
from isthmus.mcp_host.config.folder_trust import FolderTrust, file_trust
from isthmus.mcp_host.config.workspace_config import ConfiguredServer, McpConfiguration, load_configuration
from isthmus.programs.setup.setup import BadInputError
from isthmus.settings import project_settings_path, user_settings_path
from isthmus.settings.env_files import load_environment
from isthmus.text.visible import visible

USER = "user"
PROJECT = "project"
LISTED_NAMES = 20
"""Maximum number of names that the error for an unknown server lists."""

scope_option = click.option(
    "-s",
    "--scope",
    type=click.Choice([USER, PROJECT]),
    default=PROJECT,
    show_default=True,
    help="The settings file: project is .gemini/settings.json of this folder, user is ~/.gemini/settings.json.",
)


class UnknownServerError(IsthmusError):
    """No server has that name; the text lists the configured ones."""


def settings_path(scope: str) -> Path:
    """Return the settings file of a scope.

    Raises:
        BadInputError: the project's file would be the user's own.
    """
    workspace, home = Path.cwd().resolve(), Path.home()
    if scope == USER:
        return user_settings_path(home)
    path = project_settings_path(workspace)
    if path.resolve() == user_settings_path(home).resolve():
        raise BadInputError(
            f"this is your home folder, where {path} is your own settings file, not a project's; use --scope user, or "
            "change to the project's folder"
        )
    return path


def own_environment() -> dict[str, str]:
    """Return the environment with the variables of the user's own .env file."""
    return dict(load_environment(os.environ, Path.home()).variables)


def load(trusts: FolderTrust | None = None) -> McpConfiguration:
    """Return the servers for the current folder; `trusts` decides on trust, or the user's file if it is None."""
    home = Path.home()
    return load_configuration(Path.cwd().resolve(), home, own_environment(), trusts or file_trust(home))


async def load_with_editor() -> McpConfiguration:
    """Return the same for connecting: the trust stated by the editor that has the folder open takes precedence."""
    configuration = load()
    if configuration.is_trusted is None:
        return configuration  # The trust makes no difference.
    from isthmus.parts.editor.directory import trust_of_editor

    said = await trust_of_editor(Path.cwd().resolve(), own_environment())
    return configuration if said in (None, configuration.is_trusted) else load(lambda _folder: bool(said))


def named(configuration: McpConfiguration, name: str) -> ConfiguredServer | None:
    """Return the server of that name, if it is configured."""
    return next((server for server in configuration.servers if server.name == name), None)


def require(configuration: McpConfiguration, name: str) -> ConfiguredServer:
    """Return the server of that name.

    Raises:
        UnknownServerError: there is none.
    """
    if (server := named(configuration, name)) is not None:
        return server
    unread = "".join(f"\n{problem}" for problem in configuration.problems)
    raise UnknownServerError(f"no MCP server is named {name!r} here; {alternatives(name, configuration)}{unread}")


def alternatives(name: str, configuration: McpConfiguration) -> str:
    """Return a clause with the servers whose names are similar, else with all names."""
    known = [server.name for server in configuration.servers]
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = [by_lower[found] for found in difflib.get_close_matches(name.lower(), list(by_lower), 3, 0.6)]
    if close:
        return f"did you mean {' or '.join(repr(found) for found in close)}?"
    if not known:
        return "none is configured. Add one: isthmus mcp add --help"
    return f"configured are: {', '.join(known[:LISTED_NAMES])}{', ...' if len(known) > LISTED_NAMES else ''}"


def say(text: str, *, err: bool = False) -> None:
    """Print a text that may quote a server or a project's file, without control characters."""
    click.echo(visible(text), err=err)
