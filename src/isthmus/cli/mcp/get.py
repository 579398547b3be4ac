"""``isthmus mcp get``: shows how one server is configured, and whether it may be used; connects to nothing."""

import json
from collections.abc import Iterator
from pathlib import Path

import click

from isthmus.cli.mcp.rows import NOT_TRIED, ServerRow
from isthmus.cli.mcp.servers import load, require
from isthmus.mcp_host.config.secrets import summary
from isthmus.mcp_host.config.server_config import Origin
from isthmus.text.visible import visible_line


@click.command("get")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(name: str, as_json: bool) -> None:
    """Show how the MCP server NAME is configured, where, and whether it may be used. Secrets are shown as ***.

    \b
    isthmus mcp get tickets
    """
    row = ServerRow(require(load(), name))
    row.note_untried()
    if as_json:
        click.echo(json.dumps(row.as_json(), indent=2))
        return
    click.echo(visible_line(f"{name}:"))
    for line in _lines(row):
        click.echo(visible_line(f"  {line}"))


def _lines(row: ServerRow) -> Iterator[str]:
    yield f"Scope: {row.server.origin.value} ({row.server.source})"
    state = f"{row.status}; isthmus mcp doctor {row.server.name} tries it" if row.status == NOT_TRIED else row.status
    yield f"Status: {state}"
    for detail in row.details:
        yield from (f"  {line}" for line in detail.splitlines())
    if (config := row.config) is not None:
        yield f"Transport: {row.transport}"
        yield from summary(config, Path.cwd().resolve())
        lists = {"Include tools": config.include_tools, "Exclude tools": config.exclude_tools or None}
        yield from (f"{label}: {', '.join(names)}" for label, names in lists.items() if names is not None)
        flags = {"trust": config.trust, "lazy": config.lazy, "required": config.required}
        if on := [flag for flag, is_on in flags.items() if is_on]:
            yield f"Switches: {', '.join(on)}"
        if config.description:
            yield f"Description: {config.description}"
        yield from (f"Warning: {warning}" for warning in config.warnings)
    if row.server.origin in (Origin.USER, Origin.PROJECT):
        yield f"To remove it: isthmus mcp remove -s {row.server.origin.value} {row.server.name}"
