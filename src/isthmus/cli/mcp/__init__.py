"""``isthmus mcp``: the MCP servers in your settings."""

import click

from isthmus.cli.arguments.command_groups import JsonErrorGroup
from isthmus.cli.arguments.lazy_group import LazyCommand, LazyGroup


class _McpGroup(JsonErrorGroup, LazyGroup):
    pass


@click.group(
    "mcp",
    cls=_McpGroup,
    table={
        "add": LazyCommand("isthmus.cli.mcp.add", "Add a server to your settings."),
        "add-json": LazyCommand("isthmus.cli.mcp.add_json", "Add a server whose entry you have as JSON."),
        "disable": LazyCommand("isthmus.cli.mcp.change", "Switch a server off; it stays configured.", "disable"),
        "doctor": LazyCommand("isthmus.cli.mcp.doctor", "Find out why a server does not work."),
        "enable": LazyCommand("isthmus.cli.mcp.change", "Switch a server on again.", "enable"),
        "get": LazyCommand("isthmus.cli.mcp.get", "Show how one server is configured."),
        "import": LazyCommand("isthmus.cli.mcp.import_servers", "Take over the servers of another program."),
        "install": LazyCommand("isthmus.cli.mcp.install", "Add a server of a registry."),
        "list": LazyCommand("isthmus.cli.mcp.list_servers", "List the servers, and whether they work."),
        "login": LazyCommand("isthmus.cli.mcp.login", "Log in to a server that requires it.", "login"),
        "logout": LazyCommand("isthmus.cli.mcp.login", "Forget the login to a server.", "logout"),
        "remove": LazyCommand("isthmus.cli.mcp.change", "Remove a server from your settings.", "remove"),
        "search": LazyCommand("isthmus.cli.mcp.search", "Look for servers in a registry."),
        "serve": LazyCommand("isthmus.cli.mcp.serve", "Be an MCP server: serve the agent to other agents."),
    },
)
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
