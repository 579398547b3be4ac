"""``isthmus mcp search``: looks for servers in a registry."""

import json

import click

from isthmus.cli.mcp.registry import registry_option, search
from isthmus.text.visible import visible_line, with_ellipsis

LONGEST_DESCRIPTION = 300


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@registry_option
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="Maximum number of servers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(words: tuple[str, ...], registry: str | None, limit: int, as_json: bool) -> None:
    """Look for MCP servers in the public registry, or another that speaks its API. Anybody may publish there.

    \b
    isthmus mcp search filesystem
    isthmus mcp install io.github.someone/filesystem
    """
    found = search(registry, " ".join(words), limit)
    if as_json:
        keys = ("name", "version", "title", "description", "status", "kinds")
        click.echo(json.dumps({"servers": [{key: getattr(one, key) for key in keys} for one in found]}, indent=2))
        return
    for server in found:
        status = "" if server.status in ("", "active") else f" [{server.status}]"
        click.echo(visible_line(f"{server.name} {server.version}{status} ({server.kinds or 'no package'})"))
        if server.description:
            click.echo(visible_line(f"    {with_ellipsis(server.description, LONGEST_DESCRIPTION)}"))
    if not found:
        click.echo("No servers found.")
