"""A group of commands that says which command was meant, whatever the version of click."""

from difflib import get_close_matches

import click
from typing_extensions import override


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
