"""``isthmus mcp install``: adds a server of a registry, after its command or URL was shown and confirmed."""

import click

from isthmus.cli.mcp.entry import require_name
from isthmus.cli.mcp.package_versions import find_version
from isthmus.cli.mcp.registry import get, registry_option
from isthmus.cli.mcp.servers import say, scope_option, settings_path
from isthmus.cli.mcp.shown_entry import confirm, entry_lines
from isthmus.cli.mcp.writing import checked_config, notes_on, write_server
from isthmus.mcp_host.config.registry_entry import RegistryEntryError, entry_of
from isthmus.programs.setup.setup import BadInputError
from isthmus.text.visible import visible_line


@click.command("install")
@click.argument("server", metavar="SERVER")
@click.option("--name", help="Its name in your settings. Default: the last part of SERVER.")
@click.option("--version", default="latest", show_default=True, help="The version.")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A value that the server needs. Repeatable.")
@click.option("--remote", is_flag=True, help="Use its URL, if it has a package as well.")
@registry_option
@scope_option
@click.option("-y", "--yes", is_flag=True, help="Write without asking; for scripts.")
def command(
    server: str,
    name: str | None,
    version: str,
    given: tuple[str, ...],
    remote: bool,
    registry: str | None,
    scope: str,
    yes: bool,
) -> None:
    """Add SERVER of the public registry to your settings: a package of npm, PyPI or docker, or a URL.

    What will run, at a fixed version, is shown before you are asked whether to write it. Nothing is run or downloaded
    now. A secret that the server reads from a variable is not written: the entry names the variable.

    \b
    isthmus mcp install io.github.someone/filesystem --set target_dir=.
    isthmus mcp install -s user com.example/tickets --remote
    """
    values = dict(_value(text) for text in given)
    found = get(registry, server, version)
    try:
        chosen = entry_of(found, values, find_version, prefers_url=remote)
    except RegistryEntryError as error:
        raise BadInputError(visible_line(f"{server}: {error}")) from error
    entry = chosen.entry
    name = name or found.short_name
    require_name(name)
    checked_config(name, entry)
    path = settings_path(scope)
    click.echo(visible_line(f"{found.name} {found.version}: {found.description[:300]}"))
    if found.status not in ("", "active"):
        click.echo(visible_line(f"The registry calls it {found.status}."))
    for line in entry_lines(name, entry):
        click.echo(visible_line(line))
    for reason in chosen.passed_over:
        click.echo(visible_line(f"    not used: {reason}"))
    confirm(f"Write it to {path}?", yes=yes)
    existed = write_server(path, name, entry)
    click.echo(f'MCP server "{name}" {"updated in" if existed else "added to"} {scope} settings.')
    for note in notes_on(name, path, scope, is_trusted=False):
        say(f"Note: {note}", err=True)


def _value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadInputError(f"--set {name[:80]!r}: expected NAME=VALUE")
    return name, value
