"""Failures of commands that have ``--json``: one JSON object on stdout, besides the text on stderr."""

import json
from typing import Any

import click
from typing_extensions import override

from isthmus.app.suggesting_group import SuggestingGroup
from isthmus.errors import IsthmusError


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
