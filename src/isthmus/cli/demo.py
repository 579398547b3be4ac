"""``isthmus demo``: a whole task, from the prompt to the reviewed edit, with its messages on the wire."""

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

import click

from isthmus.errors import IsthmusError
from isthmus.programs.setup.setup import BadInputError


@click.command("demo")
@click.option(
    "--editor", type=click.Choice(["nvim", "headless"]), help="Where the edit is reviewed. Default: nvim if found."
)
@click.option("-m", "--model", metavar="MODEL", help="A real model instead of the built-in script.")
@click.option(
    "--record",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep every message in this folder, one JSON object per line and one file per protocol.",
)
def command(editor: str | None, model: str | None, record: Path | None) -> None:
    """Show a whole task: prompt over A2A, tools, an edit reviewed in an editor, the file written.

    Server, companion and editor run as processes of their own in a temporary git repository; none of your files are
    read or changed. The messages are from the programs' debug logs.
    """
    from isthmus.demo.demonstration import Demonstration

    program = _neovim(editor)
    if model is not None:
        _check(model)
    if record is not None:
        try:
            record.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInputError(f"--record {record}: the folder cannot be created: {error.strerror}") from error
    with tempfile.TemporaryDirectory(prefix="isthmus-demo-") as folder:
        place = Path(folder).resolve()
        demonstration = Demonstration(place, program, model, record, click.echo)
        if program is None and editor is None:
            click.echo("No Neovim was found: the edit is reviewed without an editor.")
        target = asyncio.run(demonstration.run())
        click.echo("")
        click.echo(target.read_text(encoding="utf-8").rstrip("\n"))
        if record is not None:
            click.echo(f"\nMessages: {', '.join(str(path) for path in sorted(record.glob('*.jsonl')))}")
        click.echo(f"\nWritten, with the reviewer's change in it: {target.relative_to(place)}")


def _check(model: str) -> None:
    """Check a model before anything is started.

    Raises:
        BadInputError: no model has that name, or it needs a key.
    """
    from isthmus.models.choose import choose

    try:
        choose(model, None, os.environ)
    except IsthmusError as error:
        raise BadInputError(str(error)) from error


def _neovim(editor: str | None) -> str | None:
    if editor == "headless":
        return None
    found = shutil.which("nvim", path=str(Path(sys.executable).parent)) or shutil.which("nvim")
    if found is None and editor == "nvim":
        raise BadInputError("nvim is not on PATH; install Neovim, or use --editor headless")
    return found
