"""``isthmus mcp add-json``: adds a server whose entry is given as JSON, as in the instructions of many servers."""

import sys
from typing import cast

import click

from isthmus.cli.mcp.entry import require_name
from isthmus.cli.mcp.servers import say, scope_option, settings_path
from isthmus.cli.mcp.writing import checked_config, notes_on, write_server
from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.programs.setup.setup import BadInputError

MAXIMUM_CHARACTERS = 1_000_000
"""Maximum length of the entry."""


@click.command("add-json")
@click.argument("name")
@click.argument("entry", metavar="JSON")
@scope_option
def command(name: str, entry: str, scope: str) -> None:
    """Add an MCP server to your settings, under NAME, with the entry JSON; "-" reads it from standard input.

    The entry is written as it is. A server of that name is replaced.

    \b
    isthmus mcp add-json time '{"command": "uvx", "args": ["mcp-server-time"]}'
    isthmus mcp add-json -s user tickets '{"type": "http", "url": "https://example.com/mcp"}'
    isthmus mcp add-json files - < entry.json

    Other programs of this machine can read arguments, but not standard input: use it for an entry with a secret.
    """
    require_name(name)
    text = sys.stdin.read(MAXIMUM_CHARACTERS + 1) if entry == "-" else entry
    value = _parsed(text)
    config = checked_config(name, value)
    path = settings_path(scope)
    existed = write_server(path, name, value)
    click.echo(f'MCP server "{name}" {"updated in" if existed else "added to"} {scope} settings.')
    for note in notes_on(name, path, scope, is_trusted=config.trust):
        say(f"Note: {note}", err=True)


def _parsed(text: str) -> dict[str, object]:
    if len(text) > MAXIMUM_CHARACTERS:
        raise BadInputError(f"expected an entry of at most {MAXIMUM_CHARACTERS} characters")
    try:
        text.encode()
        value: object = parse(text)
    except (JsoncError, UnicodeEncodeError) as error:
        raise BadInputError(
            f'expected the server\'s entry as JSON, such as \'{{"command": "uvx"}}\': {error}'
        ) from error
    if not isinstance(value, dict):
        raise BadInputError(f"expected an object {{...}}, received {value!r:.80}")
    entry = cast("dict[str, object]", value)
    if entry.keys() == {"mcpServers"}:
        raise BadInputError('expected the entry alone, not {"mcpServers": ...} around it')
    return entry
