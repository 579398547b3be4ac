"""``isthmus mcp remove``, ``enable`` and ``disable``: changes to configured servers."""

from pathlib import Path

import click

from isthmus.cli.mcp.servers import (
    PROJECT,
    USER,
    UnknownServerError,
    alternatives,
    load,
    named,
    require,
    say,
    scope_option,
    settings_path,
)
from isthmus.encoding.jsonc_edit import remove_member
from isthmus.mcp_host.config.enablement import enablement_path, with_server_off, with_server_on
from isthmus.mcp_host.config.server_config import Origin
from isthmus.mcp_host.config.workspace_config import UnusableCause, UnusableServer
from isthmus.settings.edit_file import change_file
from isthmus.settings.keys import MCP_SERVERS


@click.command("remove")
@click.argument("name")
@scope_option
def remove(name: str, scope: str) -> None:
    """Remove the MCP server NAME from your settings. Comments and everything else in the file stay.

    \b
    isthmus mcp remove tickets
    isthmus mcp remove -s user notes
    """
    if not change_file(settings_path(scope), lambda text: remove_member(text, [MCP_SERVERS.name, name])):
        raise UnknownServerError(f'Server "{name}" not found in {scope} settings; {_elsewhere(name, scope)}')
    click.echo(f'Server "{name}" removed from {scope} settings.')


def _elsewhere(name: str, scope: str) -> str:
    """Return a clause that says where else the server is configured, or which names are similar."""
    configuration = load()
    found = named(configuration, name)
    if found is None:
        return alternatives(name, configuration)
    other = USER if scope == PROJECT else PROJECT
    if found.origin is Origin.MCP_JSON:
        return f"it is configured in {found.source}, the file of other agents; remove it there"
    return f"it is in the {other} settings: isthmus mcp remove --scope {other} {name}"


# Gemini CLI has this option: it is refused with advice, not as unknown.
_session = click.option("--session", is_flag=True, hidden=True)


@click.command("disable")
@click.argument("name")
@_session
def disable(name: str, session: bool) -> None:
    """Switch the MCP server NAME off, for all folders and sessions, and for Gemini CLI too. It stays configured."""
    _refuse_session(session)
    require(load(), name)
    if change_file(enablement_path(Path.home()), lambda text: with_server_off(text, name)):
        click.echo(f"MCP server '{name}' disabled.")
    else:
        click.echo(f"MCP server '{name}' is disabled already.")


@click.command("enable")
@click.argument("name")
@_session
def enable(name: str, session: bool) -> None:
    """Switch the MCP server NAME on again, after `isthmus mcp disable NAME`."""
    _refuse_session(session)
    require(load(), name)
    if change_file(enablement_path(Path.home()), lambda text: with_server_on(text, name)):
        click.echo(f"MCP server '{name}' enabled.")
    else:
        click.echo(f"MCP server '{name}' is enabled already.")
    found = require(load(), name)
    if isinstance(found, UnusableServer) and found.cause is not UnusableCause.SWITCH:
        say(f"Note: it is still not used: {found.problem}", err=True)


def _refuse_session(session: bool) -> None:
    if session:
        raise click.UsageError(
            "--session has no effect here: no session is running. For one folder, put the name into mcp.excluded of "
            "its .gemini/settings.json"
        )
