"""``isthmus mcp import``: takes over the MCP servers of another program, shown and confirmed before the writing."""

import os
import sys
from pathlib import Path

import click

from isthmus.cli.mcp.entry import require_name
from isthmus.cli.mcp.servers import PROJECT, USER, say, settings_path
from isthmus.cli.mcp.shown_entry import confirm, entry_lines
from isthmus.cli.mcp.writing import checked_config, notes_on, servers_in, write_server
from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.files.atomic import read_regular
from isthmus.mcp_host.config.foreign_files import (
    CLAUDE_CODE,
    FOREIGN_FORMS,
    VSCODE,
    ForeignFileError,
    ForeignServer,
    foreign_servers,
)
from isthmus.programs.setup.setup import BadInputError
from isthmus.settings import settings_text
from isthmus.text.visible import visible_line

MAXIMUM_FILE_BYTES = 64 * 1024 * 1024
"""Maximum size of a file. Claude Code keeps the history of all folders in the same file as its servers."""


@click.command("import")
@click.argument("program", metavar="PROGRAM", type=click.Choice(FOREIGN_FORMS))
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--file", "path", type=click.Path(dir_okay=False, path_type=Path), help="Its file, if it is elsewhere.")
@click.option(
    "-s",
    "--scope",
    type=click.Choice([USER, PROJECT]),
    help="The settings file to write: user, or project, which is the default for vscode.",
)
@click.option("--replace", is_flag=True, help="Replace servers of the same name.")
@click.option("-y", "--yes", is_flag=True, help="Write without asking; for scripts.")
def command(
    program: str, names: tuple[str, ...], path: Path | None, scope: str | None, replace: bool, yes: bool
) -> int:
    """Take over the MCP servers of PROGRAM: claude-desktop, claude-code or vscode. All of them, or those named.

    Commands and URLs are shown before you are asked whether to write them. Rights such as "trust" are not taken over.
    The file of claude-code is ~/.claude.json, vscode's is .vscode/mcp.json of this folder.

    \b
    isthmus mcp import claude-desktop
    isthmus mcp import vscode playwright
    """
    place = path or _usual_path(program)
    scope = scope or (PROJECT if program == VSCODE else USER)
    target = settings_path(scope)
    present = frozenset[str]() if replace else _present(target)
    chosen: list[ForeignServer] = []
    for server in _wanted(place, program, names):
        if (problem := _problem(server, present)) is not None:
            click.echo(visible_line(f"✗ {server.name}: not taken over: {problem}"))
            continue
        chosen.append(server)
        for line in entry_lines(server.name, server.entry, is_private=True):
            click.echo(visible_line(line))
        if server.left_out:
            click.echo(visible_line(f"    left out: {', '.join(server.left_out)}"))
    if not chosen:
        click.echo(visible_line(f"Nothing to take over from {place}."))
        return 1 if names else 0
    confirm(f"Write {len(chosen)} to {target}?", yes=yes)
    for server in chosen:
        existed = write_server(target, server.name, server.entry)
        click.echo(f'MCP server "{server.name}" {"updated in" if existed else "added to"} {scope} settings.')
        for note in notes_on(server.name, target, scope, is_trusted=False):
            say(f"Note: {note}", err=True)
    return 0


def _usual_path(program: str) -> Path:
    home = Path.home()
    if program == VSCODE:
        return Path.cwd() / ".vscode" / "mcp.json"
    if program == CLAUDE_CODE:
        return Path(os.environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    if sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    return folder / "Claude" / "claude_desktop_config.json"


def _wanted(path: Path, program: str, names: tuple[str, ...]) -> list[ForeignServer]:
    """Return the servers of the file, or those with the names."""
    try:
        text = read_regular(path, MAXIMUM_FILE_BYTES).decode()
        found = foreign_servers(program, parse(text) if text.strip() else {}, Path.cwd().resolve())
    except FileNotFoundError as error:
        raise BadInputError(f"{path} does not exist; name the file with --file") from error
    except (OSError, UnicodeDecodeError, JsoncError, ForeignFileError) as error:
        raise BadInputError(f"{path} cannot be used: {error}") from error
    known = [server.name for server in found]
    if missing := [name for name in names if name not in known]:
        raise BadInputError(f"{path} has no server {missing[0]!r}; it has: {', '.join(known)[:500] or 'none'}")
    return [server for server in found if not names or server.name in names]


def _present(path: Path) -> frozenset[str]:
    try:
        return frozenset(servers_in(settings_text(path)))
    except (OSError, UnicodeDecodeError, JsoncError):
        return frozenset()  # Writing reports the fault.


def _problem(server: ForeignServer, present: frozenset[str]) -> str | None:
    if server.problem is not None:
        return server.problem
    if server.name in present:
        return "your settings have a server of that name; --replace replaces it"
    try:
        require_name(server.name)
        checked_config(server.name, server.entry)
    except BadInputError as error:
        return error.message
    return None
