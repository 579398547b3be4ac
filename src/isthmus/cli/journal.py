"""``isthmus journal``: the journal as operators see it: its state, upgrades, copies and checks."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isthmus.cli.arguments.command_groups import JsonErrorGroup
from isthmus.cli.arguments.journal_option import journal_option
from isthmus.parts.files.task_files import TaskFiles
from isthmus.programs.setup.setup import GivenOptions, data_directory
from isthmus.text.units import show_count, show_share, show_size
from isthmus.text.visible import visible_line

if TYPE_CHECKING:
    from isthmus.journal.place import JournalPlace
    from isthmus.journal.upkeep.verifying import Problem

UPGRADE_NEEDED = 2
"""Exit status of ``migrate --check`` for an older journal."""
PROBLEMS = 200
"""Maximum number of problems that are printed."""
PROGRESS_SECONDS = 0.2
"""Minimum time in seconds between two updates of the line that shows progress."""


@click.group("journal", cls=JsonErrorGroup)
def command() -> None:
    """Look after the journal, in which all tasks are stored: journal.sqlite of the data folder, or a database.

    \b
    isthmus journal status                           the journal and the processes that work with it
    isthmus journal verify                           read everything and check it
    isthmus journal migrate                          upgrade it to this version
    isthmus journal copy journal.sqlite backup.sqlite
    isthmus journal copy journal.sqlite postgresql://isthmus@db.example.org/isthmus
    isthmus journal verify backup.sqlite
    """


_DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of the stored tasks. Default: your data folder.",
)


_NAMED = click.argument("named", metavar="[FILE|URL]", required=False)


@command.command("status")
@_NAMED
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_DATA_DIR
@journal_option
def status(named: str | None, as_json: bool, data_dir: Path | None, journal: str) -> None:
    """Show a journal: its version and size, its tasks, the queue, and the processes that work with it.

    Nothing is changed, and an older journal is not upgraded. Servers may go on working with it.
    """
    from isthmus.cli.output.journal_view import status_json, status_lines
    from isthmus.journal.upkeep.status import status_of

    found = asyncio.run(status_of(_place(named, data_dir, journal)))
    if as_json:
        click.echo(json.dumps(status_json(found), ensure_ascii=False, indent=2))
    else:
        for line in status_lines(found, time.time()):
            click.echo(line)


@command.command("migrate")
@_NAMED
@click.option(
    "--check", is_flag=True, help="Change nothing; exit with 0 if the journal is up to date, with 2 if it is older."
)
@_DATA_DIR
@journal_option
def migrate(named: str | None, check: bool, data_dir: Path | None, journal: str) -> int:
    """Upgrade an older journal to this version, before the first server of this version starts.

    A server does so itself when it starts. Make a copy of the journal first: older programs refuse an upgraded one. A
    newer journal is refused.
    """
    from isthmus.journal.upkeep.migrating import migrate, versions_of

    place = _place(named, data_dir, journal)
    before, after = asyncio.run(versions_of(place) if check else migrate(place))
    name = visible_line(place.name)
    if before == after:
        click.echo(f"{name} is up to date (version {after}).")
        return 0
    if check:
        click.echo(f"{name} has version {before}; isthmus journal migrate upgrades it to version {after}.")
        return UPGRADE_NEEDED
    click.echo(f"Upgraded {name} from version {before} to version {after}.")
    return 0


@command.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def copy(source: str, target: str) -> None:
    """Copy a whole journal to a place where none is. FROM and TO are files, or URLs: postgresql://USER@HOST/NAME.

    From file to file this is a backup, which may be made while servers work with FROM. Otherwise stop them first: a
    journal that a process works with is refused. Files beside the journal (long outputs, checkpoints, tokens) are not
    copied. An interrupted copy leaves no journal at TO, and can be made again. Nobody holds the tasks of the copy: the
    first server that opens it goes on with those at work, so never run servers on both.

    Give a database's password by PGPASSWORD or a password file: others can see the arguments of programs.
    """
    from isthmus.journal.place import place_of
    from isthmus.journal.upkeep.copying import copy_journal

    places = place_of(source), place_of(target)
    with _Progress("copied") as progress:
        copied = asyncio.run(copy_journal(*places, progress.show))
    click.echo(
        f"Copied {show_count(copied.tasks, 'task')} with {show_count(copied.events, 'event')}"
        f" to {visible_line(places[1].name)}."
    )
    if copied.replaced:
        click.echo(
            f"{show_count(copied.replaced, 'text')} had characters that PostgreSQL cannot hold (NUL); they were"
            " replaced.",
            err=True,
        )


@command.command("verify")
@_NAMED
@_DATA_DIR
@journal_option
def verify(named: str | None, data_dir: Path | None, journal: str) -> int:
    """Read a whole journal and check it: exit with 0 if nothing is wrong, otherwise with 1.

    Events must be whole and without gaps, and agree with what is stored of their task beside them. Nothing is changed;
    servers may go on working with it.
    """
    from isthmus.journal.upkeep.verifying import verify as verify_journal

    place = _place(named, data_dir, journal)
    count = 0

    def on_problem(problem: "Problem") -> None:
        nonlocal count
        count += 1
        if count <= PROBLEMS:
            progress.clear()
            task = f"task {problem.task_id}: " if problem.task_id else ""
            click.echo(visible_line(f"{task}{problem.text}"))

    with _Progress("read") as progress:
        found = asyncio.run(verify_journal(place, on_problem, progress.show))
    if count > PROBLEMS:
        click.echo(f"... and {count - PROBLEMS:,} more problems")
    rows = ", ".join(f"{number:,} {name}" for name, number in found.rows.items())
    outcome = f"{show_count(count, 'problem')} found" if count else "No problem found"
    click.echo(f"{outcome} in {visible_line(place.name)}: {rows} ({show_size(found.characters)}).")
    return 1 if count else 0


def _place(named: str | None, data_dir: Path | None, journal: str) -> "JournalPlace":
    from isthmus.journal.place import JournalPlace, place_of

    if named is not None or journal:
        return place_of(named if named is not None else journal)
    return JournalPlace(TaskFiles(data_directory(GivenOptions(data_dir=data_dir))).journal)


class _Progress:
    """A line on stderr that shows how far a command is, if that is a terminal; removed at the end."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._is_shown = False
        self._next = time.monotonic()
        self._works = sys.stderr.isatty()

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def show(self, done: int, total: int) -> None:
        """Show that this much of ``total`` is done."""
        now = time.monotonic()
        if self._works and now >= self._next and total:
            self._next, self._is_shown = now + PROGRESS_SECONDS, True
            sys.stderr.write(f"\r\x1b[K{show_share(done, total)} {self._verb}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        if self._is_shown:
            self._is_shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
