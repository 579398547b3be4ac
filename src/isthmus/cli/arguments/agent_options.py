"""The options of every command that runs its own agent."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from isthmus.cli.arguments.option_group import gathered, option_group
from isthmus.models.endpoint.providers import PREFIXED_NAMES
from isthmus.programs.setup.sandbox_choice import CHOICES
from isthmus.programs.setup.setup import APPROVAL_MODES, GivenOptions
from isthmus.text.money import parse_dollars
from isthmus.text.units import AmountError, parse_wait


def _wait(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """Return the seconds of an option whose value is a time with a unit."""
    try:
        return None if value is None else parse_wait(value)
    except AmountError as error:
        raise click.BadParameter(str(error)) from error


def _dollars(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """Return the picodollars of an option whose value is an amount of US dollars."""
    try:
        return None if value is None else parse_dollars(value)
    except AmountError as error:
        raise click.BadParameter(str(error)) from error


_FOLDER = click.Path(file_okay=False, path_type=Path)
_add = option_group(
    click.option("-m", "--model", metavar="MODEL", help=f"{PREFIXED_NAMES}, ollama:NAME, demo, ..."),
    click.option("-y", "--yolo", is_flag=True, help="The same as --approval-mode yolo."),
    click.option(
        "--approval-mode",
        type=click.Choice(APPROVAL_MODES),
        help="default asks before edits and commands; auto_edit before commands; plan only reads; yolo never asks.",
    ),
    click.option(
        "--allowed-tools",
        multiple=True,
        metavar="TOOL",
        help="A tool that runs without asking: write_file, or run_shell_command(git status). Repeatable.",
    ),
    click.option(
        "--max-turns", type=click.IntRange(min=1), metavar="N", help="Maximum number of model requests per prompt."
    ),
    click.option(
        "--patience",
        callback=_wait,
        metavar="DURATION",
        help="How long a request waits for a network that is away, or a model that is busy: 90s, 10m, 1h, 0. Default:"
        " 10m in a conversation, 20m where nobody watches (-p, serve).",
    ),
    click.option(
        "--max-budget-usd",
        callback=_dollars,
        metavar="AMOUNT",
        help="US dollars that models may cost in this run of the program, such as 2.50. Work that reaches them ends"
        " after its calls. Models without a known price are not asked then.",
    ),
    click.option(
        "-s",
        "--sandbox",
        type=click.Choice(CHOICES),
        is_flag=False,
        flag_value="auto",
        metavar="[auto|require|off]",
        help="Run shell commands in bubblewrap: no writes outside the folder, no network. Where it does not work,"
        " auto warns and continues without it, require does not start.",
    ),
    click.option("--workspace", type=_FOLDER, metavar="DIR", help="The folder to work in. Default: this one."),
    click.option("--data-dir", type=_FOLDER, metavar="DIR", help="Where tasks are kept. Default: your data folder."),
    click.option(
        "--include-directories",
        multiple=True,
        metavar="DIR,DIR",
        help="Further folders in which the agent may read and edit. Repeatable.",
    ),
    click.option(
        "--append-system-prompt",
        metavar="TEXT",
        help="Further instructions of yours for every request, after the agent's own and those of files.",
    ),
    click.option(
        "--mcp-config",
        multiple=True,
        metavar="FILE|JSON",
        help='Use also the MCP servers in {"mcpServers": {...}}; they win over others of their names. Repeatable.',
    ),
    click.option(
        "--strict-mcp-config", is_flag=True, help="Use no MCP servers but those of --mcp-config; without, none."
    ),
    click.option(
        "--allowed-mcp-server-names",
        multiple=True,
        metavar="A,B",
        help="Use only these MCP servers. Repeatable.",
    ),
    click.option(
        "--strict-mcp",
        is_flag=True,
        help="Start a turn only when every MCP server is connected that is not switched off.",
    ),
    click.option(
        "--debug",
        is_flag=True,
        help="Log to stderr what happens: messages to and from the IDE, connections to MCP servers and what these"
        " write to their stderr.",
    ),
    click.option("--ide/--no-ide", default=None, help="Use the editor that has the folder open. Default: if found."),
)


def agent_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of :class:`~isthmus.programs.setup.setup.GivenOptions` to a command.

    The command gets them as ``given``.
    """
    return _add(gathered("given", GivenOptions)(command))
