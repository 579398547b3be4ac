"""Rows of the configured servers: a line each in Gemini CLI's form, with the reasons below it."""

from collections.abc import Iterator
from typing import Any

import click

from isthmus.cli.mcp.servers import say
from isthmus.mcp_host.config.secrets import summary
from isthmus.mcp_host.config.server_config import Origin, ServerConfig
from isthmus.mcp_host.config.workspace_config import ConfiguredServer, McpConfiguration, UnusableCause, UnusableServer
from isthmus.text.visible import visible_line, with_ellipsis

CONNECTED = "Connected"
DISCONNECTED = "Disconnected"
NEEDS_LOGIN = "Needs login"
DISABLED = "Disabled"
NOT_TRUSTED = "Not trusted"
NOT_TRIED = "Not tried"
_MARKS = {CONNECTED: "✓", DISCONNECTED: "✗", NEEDS_LOGIN: "!", DISABLED: "○", NOT_TRUSTED: "○", NOT_TRIED: "·"}
_LONGEST_NAME = 200


class ServerRow:
    """The row of a server. ``status`` is one of the words above, empty before it is known; ``details`` are reasons.

    ``config`` is None if the configuration has an error. ``is_usable``: it may be connected to.
    """

    def __init__(self, server: ConfiguredServer) -> None:
        self.server = server
        self.config: ServerConfig | None
        self.is_usable = not isinstance(server, UnusableServer)
        self.config = server.config if isinstance(server, UnusableServer) else server
        self.status = ""
        self.details: list[str] = []
        self.tools: int | None = None

    @property
    def is_well(self) -> bool:
        """Whether the server was tried and can be used."""
        return self.status == CONNECTED

    def note_untried(self) -> None:
        """Set the status from the configuration, for a server that is not tried."""
        if not isinstance(self.server, UnusableServer):
            self.status = NOT_TRIED
            return
        by_cause = {UnusableCause.ERROR: DISCONNECTED, UnusableCause.TRUST: NOT_TRUSTED}
        self.status = by_cause.get(self.server.cause, DISABLED)
        self.details.append(self.server.problem)

    @property
    def target(self) -> str:
        """Command or URL of the server, without secrets."""
        if self.config is None:
            return ""
        label, _, target = summary(self.config)[0].partition(": ")
        return f"command: {target}" if label == "Command" else target

    @property
    def transport(self) -> str:
        """``stdio``, ``http``, ``sse``, or ``http or sse``; empty when unknown."""
        return "" if self.config is None else self.config.endpoint.transport

    def lines(self) -> Iterator[str]:
        """Yield the line of the server, and lines with the reasons below it."""
        origin = " [.mcp.json]" if self.server.origin is Origin.MCP_JSON else ""
        target = f" {self.target} ({self.transport})" if self.config is not None else ""
        yield f"{_MARKS[self.status]} {with_ellipsis(self.server.name, _LONGEST_NAME)}{origin}:{target} - {self.status}"
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


class RowPrinter:
    """Prints rows; a reason that several servers share is printed once."""

    def __init__(self) -> None:
        self._printed: set[tuple[str, ...]] = set()

    def show(self, row: ServerRow) -> None:
        """Print the lines of a row; line ends in a name or a command do not make further lines."""
        first, *reasons = row.lines()
        why = tuple(row.details)
        if why in self._printed and not row.is_usable:
            reasons = []
        self._printed.add(why)
        for line in (first, *reasons):
            click.echo(visible_line(line))


def say_problems(configuration: McpConfiguration, *, err: bool) -> None:
    """Print that no server is configured, if so, and the problems of the configuration's files."""
    if not configuration.servers:
        click.echo("No MCP servers configured. Add one: isthmus mcp add --help")
    for problem in configuration.problems:
        say(f"Problem: {problem}", err=err)
