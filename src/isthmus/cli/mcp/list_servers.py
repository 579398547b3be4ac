"""``isthmus mcp list``: the configured servers, and whether they work.

All are connected to at the same time and closed again. Lines are printed in the order of the configuration, as soon as
they are known.
"""

import contextlib
import json

import click

from isthmus.cli.mcp.rows import RowPrinter, ServerRow, say_problems
from isthmus.cli.mcp.servers import load, load_with_editor
from isthmus.mcp_host.config.workspace_config import McpConfiguration


@click.command("list")
@click.option("--no-connect", is_flag=True, help="Only read the settings; start and connect to nothing.")
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    metavar="MS",
    help="Maximum time to connect in milliseconds. Default: the server's own timeout up to 60000, else 15000.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(no_connect: bool, timeout: int | None, as_json: bool) -> None:
    """List the MCP servers for this folder, and whether they work: start or connect to all, then close them.

    \b
    ✓ files: command: npx -y @modelcontextprotocol/server-filesystem . (stdio) - Connected
    ✗ tickets: https://example.com/mcp (http) - Disconnected
        Connection refused (https://example.com/mcp)
    ○ notes: command: uvx notes-server (stdio) - Disabled
        it is switched off; isthmus mcp enable notes, or /mcp enable notes, switches it on

    Secrets are shown as ***. `isthmus mcp doctor NAME` shows more about one.
    """
    configuration = load()
    printer = None if as_json else RowPrinter()
    if no_connect or not configuration.servers:
        rows = [ServerRow(server) for server in configuration.servers]
        for row in rows:
            row.note_untried()
            if printer is not None:
                printer.show(row)
    else:
        from isthmus.programs.process.event_loop import run_loop

        configuration, rows = run_loop(_try(timeout, printer))
    if as_json:
        listed = {"servers": [row.as_json() for row in rows], "problems": list(configuration.problems)}
        click.echo(json.dumps(listed, indent=2))
    else:
        say_problems(configuration, err=True)


async def _try(timeout: int | None, printer: RowPrinter | None) -> tuple[McpConfiguration, list[ServerRow]]:
    from isthmus.cli.mcp.connecting import trying

    configuration = await load_with_editor()
    rows = [ServerRow(server) for server in configuration.servers]
    async with contextlib.aclosing(trying(rows, timeout)) as tried:
        async for row, _ in tried:
            if printer is not None:
                printer.show(row)
    return configuration, rows
