"""``isthmus mcp doctor``: connects to a server once and shows every step, or sums up all servers."""

import contextlib
import json
from typing import TYPE_CHECKING

import click

from isthmus.cli.mcp.list_servers import DEFAULT_TIMEOUT, DISABLED, NOT_TRUSTED, Printing, Row, trying
from isthmus.cli.mcp.servers import HELP, find, load_with_editor, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isthmus.mcp_host.config.server_config import ServerConfig
    from isthmus.mcp_host.connection.connection import ServerConnection
    from isthmus.mcp_host.diagnosis.trace import Trace, TraceEntry

LOG_LINES = 20
SHOWN_TEXT = 300
"""Maximum length of a message without --full, in characters."""
LONGEST_TIMEOUT = 60_000


@click.command("doctor", context_settings=HELP, short_help="Find out why a server does not work.")
@click.argument("name", required=False)
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    metavar="MS",
    help="Maximum time in milliseconds for connecting and for listing, each.",
)
@click.option("--full", is_flag=True, help="Show up to 4000 characters of each message.")
@click.pass_context
def command(context: click.Context, name: str | None, timeout: int | None, full: bool) -> None:
    """Find out why the MCP server NAME does not work: connect to it once, and show everything that happens.

    The report has the steps with their times, each message with its direction, time and size, the server's description
    of itself, what it offers and what of it cannot be used, its error output and exit code, and what to do. Secrets are
    shown as ***. Without NAME all servers are tried, with a line or two each.

    The exit status is 0 when it works, and 1 when it does not.
    """
    from isthmus.app.event_loop import run as run_loop

    shown = None if full else SHOWN_TEXT
    is_well = run_loop(_all(timeout) if name is None else _one(name, timeout, shown))
    context.exit(0 if is_well else 1)


def _describe(row: Row) -> None:
    from isthmus.mcp_host.config.secrets import summary

    say(f"{row.server.name}: {row.target} ({row.transport})" if row.config is not None else row.server.name)
    say(f"  Configured in: {row.server.source} ({row.server.origin.value})")
    for line in summary(row.config)[1:] if row.config is not None else ():
        say(f"  {line}")
    for warning in row.config.warnings if row.config is not None else ():
        say(f"  Warning: {warning}")


async def _one(name: str, timeout: int | None, shown: int | None) -> bool:
    """Examine the server and return whether it works."""
    row = Row(find(await load_with_editor(), name))
    _describe(row)
    if row.is_usable and row.config is not None:
        return await _examine(row, row.config, timeout, shown)
    row.note_untried()
    say(f"\nResult: it is not used ({row.status.lower()}), and was not tried.")
    for detail in row.details:
        say(f"  {detail}")
    return False


async def _examine(row: Row, config: "ServerConfig", timeout: int | None, shown: int | None) -> bool:
    from isthmus.cli.mcp.trial import connecting, limited
    from isthmus.mcp_host.config.secrets import Secrets
    from isthmus.mcp_host.diagnosis.examination import advice, ending
    from isthmus.mcp_host.diagnosis.trace import Trace

    trace = Trace(Secrets(config).hidden)
    limit = limited(config, timeout, LONGEST_TIMEOUT)
    async with connecting([limit], trace) as connections:
        connection = connections[config.name]
        await connection.settled(limit.connect_seconds * 4 + 5)
        state, log = connection.state, connection.log
        row.note(connection)
        for line in (*_steps(trace), *_offer(connection, trace), *_messages(trace, shown)):
            say(line)
    if tail := log.tail(LOG_LINES):
        say("\nIts output")
        for line in connection.hidden(tail).splitlines():
            say(f"  {line}")
    if not row.is_well:
        if how := ending(trace.entries, log):
            say(f"\nIt ended{how}.")
        say(f"\nResult: it does not work: {connection.problem or 'it did not answer in time'}")
        say(f"What to do: {connection.hidden(advice(config, state, trace.entries, log))}")
        return False
    say("\nResult: it works.")
    return True


def _steps(trace: "Trace") -> "Iterator[str]":
    from isthmus.mcp_host.diagnosis.examination import steps

    # Servers of revisions before 2026-07-28 refuse server/discover: nothing is wrong with them.
    yield "\nSteps"
    for step in steps(trace.entries):
        took = "no answer" if step.seconds is None else f"{step.seconds:.3f} s"
        how = "" if not step.is_error else ", refused" if step.name == "server/discover" else ", an error"
        yield f"  {step.name:<30} {took}{how}"


def _offer(connection: "ServerConnection", trace: "Trace") -> "Iterator[str]":
    from isthmus.agent.context.size import tool_tokens
    from isthmus.mcp_host.diagnosis.examination import self_description
    from isthmus.text.units import show_count

    found = self_description(trace.entries)
    if found is not None:
        yield f"\nServer: {f'{found.name} {found.version}'.strip() or 'without a name'}"
        yield f"  Protocol: {found.protocol or 'unknown'}"
        yield f"  Capabilities: {', '.join(found.capabilities) or 'none'}"
    offer = connection.offer
    if not offer.is_empty:
        counts = ((offer.tools, "tool"), (offer.prompts, "prompt"), (offer.resources, "resource"))
        yield f"  Offers: {', '.join(show_count(len(items), noun) for items, noun in counts)}"
        cost = sum(tool_tokens(tool.name, tool.description, tool.parameters) for tool in offer.tools)
        yield f"  Its tools take about {show_count(cost, 'token')} of the model's context"
    for reason in offer.dropped:
        yield f"  Left out: {connection.hidden(reason)}"


def _messages(trace: "Trace", shown: int | None) -> "Iterator[str]":
    yield "\nMessages (→ sent, ← received)"
    for entry in trace.entries:
        yield _line(entry)
        if text := entry.text:
            cut = text if shown is None or len(text) <= shown else f"{text[:shown]} ..."
            yield f"             {cut}"
    if trace.dropped:
        yield f"  {trace.dropped} more were not recorded"


def _line(entry: "TraceEntry") -> str:
    from isthmus.mcp_host.diagnosis.trace import TraceKind
    from isthmus.text.units import show_size

    at = f"  {entry.at:8.3f} s"
    if entry.kind not in (TraceKind.SENT, TraceKind.RECEIVED):
        return f"{at} · {entry.kind.value}"
    number = "" if entry.id is None else f" #{json.dumps(entry.id)}"
    what = entry.method
    if entry.is_answer:
        what = f"{'error' if entry.is_error else 'answer'}{f' to {entry.method}' if entry.method else ''}"
    return f"{at} {'→' if entry.kind is TraceKind.SENT else '←'} {what}{number}, {show_size(entry.size)}"


async def _all(timeout: int | None) -> bool:
    """Try all servers and return whether every server that is to be used can be."""
    from isthmus.text.units import show_count

    configuration = await load_with_editor()
    rows = [Row(server) for server in configuration.servers]
    if not rows:
        say("No MCP servers configured. Add one: isthmus mcp add --help")
    for problem in configuration.problems:
        say(f"Problem: {problem}")
    is_well = not configuration.problems
    printing = Printing()
    async with contextlib.aclosing(trying(rows, timeout, DEFAULT_TIMEOUT)) as tried:
        async for row, connection in tried:
            printing.show(row)
            is_well = is_well and (row.is_well or row.status in (DISABLED, NOT_TRUSTED))
            if connection is not None and row.is_well:
                say(f"    {show_count(len(connection.offer.tools), 'tool')}")
            if connection is not None:
                for reason in connection.offer.dropped:
                    say(f"    left out: {connection.hidden(reason)}")
    return is_well
