"""Groups of commands: one that says which command was meant, and one that prints failures as JSON for ``--json``."""

import json
from difflib import get_close_matches
from typing import Any

import click
from typing_extensions import override

from isthmus.errors import IsthmusError


class SuggestingGroup(click.Group):
    """Group that names commands like the one that was typed, or else all of them."""

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            likely = get_close_matches(name, known)
            meant = f"Did you mean {' or '.join(likely)}?" if likely else f"Expected one of {', '.join(known)}."
            raise click.UsageError(f"Unknown command {name!r}. {meant}", ctx)
        return super().resolve_command(ctx, args)


class JsonErrorGroup(SuggestingGroup):
    """Command group that prints ``{"error": TEXT}`` for every failure, if ``--json`` is among the arguments."""

    _as_json = False

    @override
    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        # Searched here: parsing the arguments may fail, and the arguments after "--" belong to another program.
        own = args[: args.index("--")] if "--" in args else args
        self._as_json = "--json" in own
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            self._print(error.format_message())
            raise

    @override
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            self._print(error.format_message())
            raise
        except IsthmusError as error:
            self._print(str(error))
            raise

    def _print(self, text: str) -> None:
        if self._as_json:
            click.echo(json.dumps({"error": text}))
