"""``isthmus mcp``: the MCP servers in your settings. Imports nothing of MCP to show, add or remove them."""

import click

from isthmus.app.json_errors import JsonErrorGroup
from isthmus.cli.mcp import add as mcp_add
from isthmus.cli.mcp import change as mcp_change
from isthmus.cli.mcp import doctor as mcp_doctor
from isthmus.cli.mcp import list_servers as mcp_list
from isthmus.cli.mcp import login as mcp_login
from isthmus.cli.mcp.servers import HELP


@click.group("mcp", cls=JsonErrorGroup, context_settings=HELP)
def command() -> None:
    """Manage MCP servers: programs and URLs that give the agent more tools.

    They are configured as for Gemini CLI, under "mcpServers" in .gemini/settings.json of a folder (project scope) and
    in ~/.gemini/settings.json (user scope), by these commands or by hand.

    \b
    isthmus mcp add time uvx mcp-server-time     add a program, for this folder
    isthmus mcp list                             show all, and whether they work
    isthmus mcp doctor time                      find out why one does not
    isthmus mcp remove time

    In a session, /mcp shows their tools. See docs/how-to/mcp.md.
    """


command.add_command(mcp_add.command)
command.add_command(mcp_list.command)
command.add_command(mcp_change.remove)
command.add_command(mcp_change.enable)
command.add_command(mcp_change.disable)
command.add_command(mcp_doctor.command)
command.add_command(mcp_login.login)
command.add_command(mcp_login.logout)
