"""``isthmus mcp add``: adds a server to a settings file. Arguments after a server's command are the server's own."""

import itertools
from collections.abc import Sequence
from typing import Any

import click

from isthmus.cli.mcp.entry import STDIO, NewServer, entry, is_url
from isthmus.cli.mcp.servers import say, scope_option, settings_path
from isthmus.cli.mcp.writing import notes_on, write_server

_MISPLACED = "isthmus.mcp.add.misplaced"
"""Key in a context of an argument that was perhaps meant for this command."""


class _AddCommand(click.Command):
    """Reads options before and right after the name, and after a URL; arguments after a command are the server's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments with the options of this command first, and all others behind ``--``."""
        options, rest = self._leading_options(args)
        name = rest[:1]
        after_name, rest = self._leading_options(rest[1:])
        options += after_name
        target, rest = rest[:1], rest[1:]
        if target and (is_url(target[0]) or self._transport(options) != STDIO):
            arguments: list[str] = []
            while rest:
                after_url, rest = self._leading_options(rest)
                options += after_url
                arguments += rest[:1]
                rest = rest[1:]
        else:
            arguments = rest[1:] if rest[:1] == ["--"] else rest
            if "--" not in args and (misplaced := self.misplaced(arguments)):
                ctx.meta[_MISPLACED] = misplaced
        return super().parse_args(ctx, [*options, "--", *name, *target, *arguments])

    def misplaced(self, args: Sequence[str]) -> str:
        """Return the first argument of a server's command that looks like an option of this command, or nothing.

        Of the short ones, which many programs have, those alone that are followed by a word that only fits here.
        """
        known = {option: found for found in self.params for option in found.opts if isinstance(found, click.Option)}
        for argument, after in itertools.zip_longest(args, args[1:], fillvalue=""):
            name, _, _ = argument.partition("=")
            found = known.get(name)
            if found is None:
                continue
            fits = isinstance(found.type, click.Choice) and after in found.type.choices
            if name.startswith("--") or fits:
                return f"{argument} {after}" if fits else argument
        return ""

    def _probe(self, args: Sequence[str]) -> click.Context:
        options: list[click.Parameter] = [found for found in self.params if isinstance(found, click.Option)]
        probe = click.Command(
            self.name,
            params=[*options, click.Option(["-h", "--help"], is_flag=True)],
            context_settings={"allow_interspersed_args": False, "allow_extra_args": True},
            add_help_option=False,
        )
        # Errors are reported when the command parses all arguments.
        return probe.make_context(self.name, list(args), resilient_parsing=True)

    def _leading_options(self, args: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the options at the beginning with their values, and the remaining arguments."""
        rest = [*self._probe(args).args]
        options = list(args[: len(args) - len(rest)])
        if options and options[-1] == "--":
            options.pop()
        return options, rest

    def _transport(self, options: Sequence[str]) -> object:
        return self._probe(options).params.get("transport")


@click.command("add", cls=_AddCommand, options_metavar="[OPTIONS]")
@click.argument("name")
@click.argument("command_or_url", metavar="COMMAND_OR_URL")
@click.argument("args", nargs=-1, metavar="[ARGS]...", type=click.UNPROCESSED)
@scope_option
@click.option(
    "-t",
    "--transport",
    "--type",
    type=click.Choice([STDIO, "sse", "http"]),
    default=STDIO,
    show_default=True,
    help="stdio starts a command here; http (streamable HTTP) and sse connect to a URL.",
)
@click.option("-e", "--env", multiple=True, metavar="KEY=VALUE", help="A variable for the command. Repeatable.")
@click.option(
    "-H", "--header", multiple=True, metavar='"NAME: VALUE"', help="A header of each request to the URL. Repeatable."
)
@click.option(
    "--timeout", type=click.IntRange(1, 10**12), metavar="MS", help="Milliseconds to connect, and of silence in a call."
)
@click.option("--trust", is_flag=True, help="Run its tools without asking; effective only in the user scope.")
@click.option("--description", metavar="TEXT", help="What the server is good for.")
@click.option("--include-tools", multiple=True, metavar="A,B", help="Use only these tools.")
@click.option("--exclude-tools", multiple=True, metavar="A,B", help="Use all tools except these.")
@click.pass_context
def command(
    context: click.Context, name: str, command_or_url: str, args: tuple[str, ...], scope: str, **options: Any
) -> None:
    """Add an MCP server to your settings, under NAME; a server of that name is replaced.

    Options stand before NAME or right after it. Arguments after the command of a server belong to the server; after a
    URL, options still belong to this command.

    \b
    isthmus mcp add files npx -y @modelcontextprotocol/server-filesystem .
    isthmus mcp add api -e API_KEY='$MY_KEY' python server.py --port 8080
    isthmus mcp add -t http tickets https://example.com/mcp -H "Authorization: Bearer abc123"
    isthmus mcp add -s user --trust notes -- uvx notes-server

    A value may name a variable, $NAME or ${NAME}, which is filled in when the server starts, so that the file does not
    contain secrets. `isthmus mcp doctor NAME` tries the server.
    """
    new = entry(NewServer(name, command_or_url, args, **options))
    path = settings_path(scope)
    existed = write_server(path, name, new)
    if existed:
        click.echo(f'MCP server "{name}" is already configured within {scope} settings.')
        click.echo(f'MCP server "{name}" updated in {scope} settings.')
    else:
        click.echo(f'MCP server "{name}" added to {scope} settings. ({options["transport"]})')
    if misplaced := context.meta.get(_MISPLACED):
        say(
            f"Note: {misplaced} stands behind {command_or_url}, which gets it; for `isthmus mcp add` it must stand"
            f" before or right after {name}. Write -- before {command_or_url} to leave out this note",
            err=True,
        )
    for note in notes_on(name, path, scope, is_trusted=bool(options["trust"])):
        say(f"Note: {note}", err=True)
