"""A click group whose commands are imported only when they run, so that its help is shown at once."""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import override

from isthmus.cli.arguments.command_groups import SuggestingGroup
from isthmus.record import record

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@record
class LazyCommand:
    """A command by its module and its name there, with its line in the help of the group."""

    module: str
    summary: str
    name: str = "command"

    def load(self) -> click.Command:
        """Import the command."""
        return getattr(importlib.import_module(self.module), self.name)


class LazyGroup(SuggestingGroup):
    """A group of the commands in ``table``, listed in its order."""

    def __init__(self, *args: Any, table: Mapping[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = self._table.get(cmd_name)
        return None if known is None else known.load()

    @override
    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem[Any]"]:
        """Return the commands and options that begin so. Unlike click's, it imports none of them for its summary."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=known.summary)
            for name, known in self._table.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, known.summary) for name, known in self._table.items()])
