"""Lists for the user the programs that a project's files would start on this machine if its folder were trusted.

Reads files and blocks; has no other effects.
"""

from collections.abc import Mapping
from pathlib import Path

from isthmus.text.visible import with_ellipsis

MAXIMUM_LINES = 20
"""Maximum number of lines; one more line has the number of omitted ones."""
LONGEST_LINE = 2_100
"""Maximum length of a line in characters."""


def project_programs(workspace: Path, home: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return a line for each MCP server in the project's files and for each custom command that runs the shell."""
    lines = [*_servers(workspace, home, environment), *_commands(workspace)]
    more = len(lines) - MAXIMUM_LINES
    lines = [with_ellipsis(line, LONGEST_LINE) for line in lines[:MAXIMUM_LINES]]
    return tuple(lines) if more <= 0 else (*lines, f"and {more} more")


def _servers(workspace: Path, home: Path, environment: Mapping[str, str]) -> list[str]:
    from isthmus.mcp_host.config.secrets import summary
    from isthmus.mcp_host.config.workspace_config import UnusableCause, UnusableServer, load_configuration

    configuration = load_configuration(workspace, home, environment, lambda _: False)
    lines: list[str] = []
    for server in configuration.servers:
        if isinstance(server, UnusableServer) and server.cause is UnusableCause.TRUST:
            way = summary(server.config)[0] if server.config is not None else "(its configuration has an error)"
            lines.append(f"MCP server {server.name}: {way}")
    return lines


def _commands(workspace: Path) -> list[str]:
    from isthmus.agent.commands.custom_files import find_custom_commands

    found = find_custom_commands(None, workspace, ())
    return [
        f"{command.name} runs: {'; '.join(shell)}"
        for command in found.commands
        if command.is_of_project and (shell := command.template.shell_texts)
    ]
