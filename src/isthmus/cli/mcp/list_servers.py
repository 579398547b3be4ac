"""``isthmus mcp list``: the configured servers, a line each in Gemini CLI's form, and whether they work.

All are connected to at the same time and closed again. Lines are printed in the order of the configuration, as soon as
they are known.
"""

import contextlib
import json
from typing import TYPE_CHECKING, Any

import click

from isthmus.cli.mcp.servers import HELP, load, load_with_editor, say
from isthmus.text.visible import with_ellipsis

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from isthmus.mcp_host.config.server_config import ServerConfig
    from isthmus.mcp_host.config.workspace_config import ConfiguredServer, McpConfiguration
    from isthmus.mcp_host.connection.connection import ServerConnection

DEFAULT_TIMEOUT = 15_000
"""Default time to connect in milliseconds."""
PATIENCE_SECONDS = 3.0
"""Delay in seconds before the servers that are still waited for are named."""

CONNECTED = "Connected"
DISCONNECTED = "Disconnected"
NEEDS_LOGIN = "Needs login"
DISABLED = "Disabled"
NOT_TRUSTED = "Not trusted"
NOT_TRIED = "Not tried"
_MARKS = {CONNECTED: "✓", DISCONNECTED: "✗", NEEDS_LOGIN: "!", DISABLED: "○", NOT_TRUSTED: "○", NOT_TRIED: "·"}


@click.command("list", context_settings=HELP, short_help="List the servers, and whether they work.")
@click.option("--no-connect", is_flag=True, help="Only read the settings; start and connect to nothing.")
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    metavar="MS",
    help="Maximum time to connect in milliseconds. Default: the server's own timeout, up to 15000.",
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
    if no_connect or not configuration.servers:
        rows = [Row(server) for server in configuration.servers]
        printing = Printing()
        for row in rows:
            row.note_untried()
            if not as_json:
                printing.show(row)
    else:
        from isthmus.app.event_loop import run as run_loop

        configuration, rows = run_loop(_try(timeout, as_json=as_json))
    if as_json:
        listed = {"servers": [row.as_json() for row in rows], "problems": list(configuration.problems)}
        click.echo(json.dumps(listed, indent=2))
        return
    if not rows:
        click.echo("No MCP servers configured. Add one: isthmus mcp add --help")
    for problem in configuration.problems:
        say(f"Problem: {problem}", err=True)


class Row:
    """The row of a server in the list. ``status`` is one of the words above; ``details`` are the reasons."""

    def __init__(self, server: "ConfiguredServer") -> None:
        from isthmus.mcp_host.config.workspace_config import UnusableServer

        self.server = server
        self.status = ""
        self.details: list[str] = []
        self.tools: int | None = None
        self.is_usable = not isinstance(server, UnusableServer)

    @property
    def config(self) -> "ServerConfig | None":
        """Configuration of the server; None if it has an error."""
        from isthmus.mcp_host.config.workspace_config import UnusableServer

        return self.server.config if isinstance(self.server, UnusableServer) else self.server

    @property
    def is_well(self) -> bool:
        """Whether the server was tried and can be used."""
        return self.status == CONNECTED

    def note_untried(self) -> None:
        """Set the status from the configuration, for a server that is not tried."""
        from isthmus.mcp_host.config.workspace_config import Hindrance, UnusableServer

        if not isinstance(self.server, UnusableServer):
            self.status = NOT_TRIED
            return
        by_hindrance = {Hindrance.ERROR: DISCONNECTED, Hindrance.TRUST: NOT_TRUSTED}
        self.status = by_hindrance.get(self.server.hindrance, DISABLED)
        self.details.append(self.server.problem)

    def note(self, connection: "ServerConnection") -> None:
        """Set the status from the outcome of connecting."""
        from isthmus.tools.servers import ServerState

        match connection.state:
            case ServerState.CONNECTED:
                self.status = CONNECTED
                self.tools = len(connection.offer.tools)
            case ServerState.NEEDS_LOGIN:
                self.status = NEEDS_LOGIN
                self.details.append(f"it requires a login: isthmus mcp login {connection.config.name}")
            case _:
                self.status = DISCONNECTED
                self.details.append(connection.problem or "it did not answer in time")
        self.details += connection.config.warnings

    @property
    def target(self) -> str:
        """Command or URL of the server, without secrets."""
        from isthmus.mcp_host.config.secrets import summary

        if self.config is None:
            return ""
        label, _, target = summary(self.config)[0].partition(": ")
        return f"command: {target}" if label == "Command" else target

    @property
    def transport(self) -> str:
        """``stdio``, ``http``, ``sse``, or ``http or sse``; empty when unknown."""
        return "" if self.config is None else self.config.endpoint.transport

    def lines(self) -> "Iterator[str]":
        """Yield the line of the server, and lines with the reasons below it."""
        from isthmus.mcp_host.config.server_config import Origin

        origin = " [.mcp.json]" if self.server.origin is Origin.MCP_JSON else ""
        target = f" {self.target} ({self.transport})" if self.config is not None else ""
        yield f"{_MARKS[self.status]} {with_ellipsis(self.server.name, 200)}{origin}:{target} - {self.status}"
        for detail in self.details:
            yield from (f"    {line}" for line in detail.splitlines())

    def as_json(self) -> dict[str, Any]:
        """Return the row in the form of ``--json``."""
        return {
            "name": self.server.name,
            "origin": self.server.origin.value,
            "file": None if self.server.source is None else str(self.server.source),
            "transport": self.transport or None,
            "target": self.target.removeprefix("command: ") or None,
            "status": self.status.lower(),
            "details": self.details,
            "tools": self.tools,
        }


class Printing:
    """Prints rows; a reason that several servers share is printed once."""

    def __init__(self) -> None:
        self._said: set[tuple[str, ...]] = set()

    def show(self, row: Row) -> None:
        """Print the lines of a row; line ends in a name or a command do not make further lines."""
        from isthmus.terminal.sanitize import visible_line

        first, *reasons = row.lines()
        why = tuple(row.details)
        is_said = why in self._said and not row.is_usable
        self._said.add(why)
        for line in (first, *([] if is_said else reasons)):
            click.echo(visible_line(line))


async def _try(timeout: int | None, *, as_json: bool) -> "tuple[McpConfiguration, list[Row]]":
    configuration = await load_with_editor()
    rows = [Row(server) for server in configuration.servers]
    printing = Printing()
    async with contextlib.aclosing(trying(rows, timeout, DEFAULT_TIMEOUT)) as tried:
        async for row, _ in tried:
            if not as_json:
                printing.show(row)
    return configuration, rows


async def trying(
    rows: list[Row], timeout: int | None, longest: int
) -> "AsyncGenerator[tuple[Row, ServerConnection | None], None]":
    """Connect to all usable servers at the same time; yield each row in order, once its outcome is known.

    `timeout` and `longest` are in milliseconds, see :func:`isthmus.cli.mcp.trial.limited`.
    """
    import asyncio

    from isthmus.cli.mcp.trial import connecting, limited

    configs = [limited(row.config, timeout, longest) for row in rows if row.is_usable and row.config is not None]
    async with connecting(configs) as connections:
        waiting = asyncio.create_task(_name_the_slow(connections))
        try:
            for row in rows:
                found = connections.get(row.server.name)
                if found is None:
                    row.note_untried()
                else:
                    # Each of the two transports for a URL has a deadline to connect, and one to list.
                    await found.settled(found.config.connect_seconds * 4 + 5)
                    row.note(found)
                yield row, found
        finally:
            waiting.cancel()


async def _name_the_slow(connections: "dict[str, ServerConnection]") -> None:
    import asyncio

    await asyncio.sleep(PATIENCE_SECONDS)
    slow = [name for name, found in connections.items() if not found.is_settled]
    if slow:
        say(f"Waiting for {', '.join(slow)} ...", err=True)
