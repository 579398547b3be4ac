"""``isthmus mcp doctor``: connects to a server once and shows every step, or sums up all servers."""

import contextlib
import json
from collections.abc import Iterator

import click

from isthmus.agent.session.size import tool_tokens
from isthmus.cli.mcp.connecting import connecting, settle, trying, with_timeout
from isthmus.cli.mcp.rows import DISABLED, NOT_TRUSTED, RowPrinter, ServerRow, say_problems
from isthmus.cli.mcp.servers import load_with_editor, require, say
from isthmus.mcp_host.config.secrets import Secrets, summary
from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.diagnosis.examination import advice, ending, self_description, steps
from isthmus.mcp_host.diagnosis.trace import Trace, TraceEntry, TraceKind
from isthmus.programs.process.event_loop import run_loop
from isthmus.text.units import show_count, show_size

LOG_LINES = 20
"""Maximum number of lines of a server's error output that are shown."""
SHOWN_TEXT = 300
"""Maximum length of a message without --full, in characters."""
DEFAULT_TIMEOUT = 30_000
"""Maximum time to connect in milliseconds to a server whose configuration has no timeout."""


@click.command("doctor")
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

    The report has the steps with their times, and each message with its direction, time and size. It has the server's
    description of itself, what it offers and what of it cannot be used, its error output and exit code, and what to do.
    Secrets are shown as ***. Without NAME all servers are tried, with a line or two each.

    The exit status is 0 when it works, and 1 when it does not.
    """
    shown = None if full else SHOWN_TEXT
    is_well = run_loop(_all(timeout) if name is None else _one(name, timeout, shown))
    context.exit(0 if is_well else 1)


def _describe(row: ServerRow) -> None:
    say(f"{row.server.name}: {row.target} ({row.transport})" if row.config is not None else row.server.name)
    say(f"  Configured in: {row.server.source} ({row.server.origin.value})")
    for line in summary(row.config)[1:] if row.config is not None else ():
        say(f"  {line}")
    for warning in row.config.warnings if row.config is not None else ():
        say(f"  Warning: {warning}")


async def _one(name: str, timeout: int | None, shown: int | None) -> bool:
    """Examine the server and return whether it works."""
    row = ServerRow(require(await load_with_editor(), name))
    _describe(row)
    if row.is_usable and row.config is not None:
        return await _examine(row, row.config, timeout, shown)
    row.note_untried()
    say(f"\nResult: it is not used ({row.status.lower()}), and was not tried.")
    for detail in row.details:
        say(f"  {detail}")
    return False


async def _examine(row: ServerRow, config: ServerConfig, timeout: int | None, shown: int | None) -> bool:
    trace = Trace(Secrets(config).hidden)
    async with connecting([with_timeout(config, timeout, DEFAULT_TIMEOUT)], trace) as connections:
        connection = connections[config.name]
        await settle(row, connection)
        state, log = connection.state, connection.log
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


def _steps(trace: Trace) -> Iterator[str]:
    yield "\nSteps"
    for step in steps(trace.entries):
        took = "no answer" if step.seconds is None else f"{step.seconds:.3f} s"
        # A refusal of server/discover is normal: revisions of MCP before 2026-07-28 do not have it.
        how = "" if not step.is_error else ", refused" if step.name == "server/discover" else ", an error"
        yield f"  {step.name:<30} {took}{how}"


def _offer(connection: ServerConnection, trace: Trace) -> Iterator[str]:
    found = self_description(trace.entries)
    if found is not None:
        yield f"\nServer: {f'{found.name} {found.version}'.strip() or 'without a name'}"
        yield f"  Protocol: {found.protocol or 'unknown'}"
        yield f"  Capabilities: {', '.join(found.capabilities) or 'none'}"
    catalogue = connection.catalogue
    if not catalogue.is_empty:
        counts = ((catalogue.tools, "tool"), (catalogue.prompts, "prompt"), (catalogue.resources, "resource"))
        yield f"  Offers: {', '.join(show_count(len(items), noun) for items, noun in counts)}"
        cost = sum(tool_tokens(tool.name, tool.description, tool.parameters) for tool in catalogue.tools)
        yield f"  Its tools take about {show_count(cost, 'token')} of the model's context"
    for reason in catalogue.dropped:
        yield f"  Left out: {connection.hidden(reason)}"


def _messages(trace: Trace, shown: int | None) -> Iterator[str]:
    yield "\nMessages (→ sent, ← received)"
    for entry in trace.entries:
        yield _line(entry)
        if text := entry.text:
            cut = text if shown is None or len(text) <= shown else f"{text[:shown]} ..."
            yield f"             {cut}"
    if trace.dropped:
        yield f"  {trace.dropped} more were not recorded"


def _line(entry: TraceEntry) -> str:
    at = f"  {entry.at:8.3f} s"
    if entry.kind not in (TraceKind.SENT, TraceKind.RECEIVED):
        return f"{at} · {entry.kind.value}"
    number = "" if entry.id is None else f" #{json.dumps(entry.id)}"
    what = entry.method
    if entry.is_answer:
        what = f"{'error' if entry.is_error else 'answer'}{f' to {entry.method}' if entry.method else ''}"
    return f"{at} {'→' if entry.kind is TraceKind.SENT else '←'} {what}{number}, {show_size(entry.size)}"


async def _all(timeout: int | None) -> bool:
    """Try all servers and return whether all work that are not switched off or in an untrusted folder."""
    configuration = await load_with_editor()
    rows = [ServerRow(server) for server in configuration.servers]
    say_problems(configuration, err=False)
    is_well = not configuration.problems
    printer = RowPrinter()
    async with contextlib.aclosing(trying(rows, timeout)) as tried:
        async for row, connection in tried:
            printer.show(row)
            is_well = is_well and (row.is_well or row.status in (DISABLED, NOT_TRUSTED))
            if connection is None:
                continue
            if row.is_well:
                say(f"    {show_count(len(connection.catalogue.tools), 'tool')}")
            for reason in connection.catalogue.dropped:
                say(f"    left out: {connection.hidden(reason)}")
    return is_well
