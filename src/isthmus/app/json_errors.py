"""Failures of commands that have ``--json``: one JSON object on stdout, besides the words on stderr."""

import json
from typing import Any

import click

from isthmus.errors import IsthmusError


class JsonErrorGroup(click.Group):
    """Prints ``{"error": TEXT}`` for whatever fails in it, or in its arguments, when ``--json`` is among them."""

    _as_json = False

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        # Noted by hand: the arguments may be what fails, and behind "--" they are somebody else's.
        own = args[: args.index("--")] if "--" in args else args
        self._as_json = "--json" in own
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            self._print(error.format_message())
            raise

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
