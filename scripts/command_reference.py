"""Writes docs/reference/commands.md: the help of every command, as the program prints it. A test keeps it current."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from isthmus.cli.main import command as isthmus

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.md"
WIDTH = 100
"""Width of the help texts in columns."""
INTRODUCTION = """# Commands

Every command with its options, as `--help` prints it; `.venv/bin/python scripts/command_reference.py` writes this page.
[settings.md](settings.md) documents settings files.
"""


def commands(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, click.Context]]:
    """Yield the full names of a command and of all its sub-commands, each with its context."""
    names: list[str] | None = command.context_settings.get("help_option_names")
    context = click.Context(
        command, parent, name, terminal_width=WIDTH, max_content_width=WIDTH, help_option_names=names
    )
    with context:
        yield context.command_path, context
        if isinstance(command, click.Group):
            for below in command.list_commands(context):
                if (found := command.get_command(context, below)) is not None and not found.hidden:
                    yield from commands(found, below, context)


def page() -> str:
    """Return the text of the page."""
    found = commands(isthmus, "isthmus")
    parts = [f"## `{name}`\n\n```\n{context.command.get_help(context).rstrip()}\n```\n" for name, context in found]
    return "\n".join((INTRODUCTION, *parts))


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
