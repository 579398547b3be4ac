"""``isthmus tasks``: shows and removes stored tasks. Reads and writes the journal beside a running server."""

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

from isthmus.cli.arguments.command_groups import JsonErrorGroup
from isthmus.cli.arguments.journal_option import journal_option
from isthmus.errors import IsthmusError
from isthmus.parts.files.task_files import TaskFiles
from isthmus.programs.setup.setup import BadInputError, GivenOptions, data_directory
from isthmus.record import record
from isthmus.text.units import AmountError, parse_age, parse_size, show_count, show_size

if TYPE_CHECKING:
    from isthmus.agent.session.turn import AgentTurn
    from isthmus.client import HistoryMessage
    from isthmus.events import ArtifactUpdate, StateChange
    from isthmus.journal.port.base import Journal
    from isthmus.journal.port.pushes import PushRow
    from isthmus.journal.port.task_rows import TaskRow

T = TypeVar("T")

LISTED = 50
SHOWN_MESSAGES = 1000
EXPORT_ROWS = 500
EXPORT_FORMAT = 1
"""Version of the export; raised when the lines of an export change their meaning."""
CANCEL_SECONDS = 20.0
ALL = 2**62


class TasksError(IsthmusError):
    """A command on tasks failed; the text says what was done before."""


@click.group("tasks", cls=JsonErrorGroup)
def command() -> None:
    """Look at the tasks that are stored on this machine, and delete them.

    Every prompt and every slash command is a task. Its conversation, tool calls and edits are stored in a journal, so
    that it can be resumed and nothing is lost. They stay there until you delete them, or until the journal reaches its
    maximum size (isthmus.journal.maxSize in settings.json, 1GiB by default): then the tasks that ended first go.

    \b
    isthmus tasks list                      the newest tasks
    isthmus tasks show 3f2a                 one task and its conversation; the beginning of an id is enough
    isthmus tasks export 3f2a -o task.jsonl everything that is stored of it
    isthmus tasks delete 3f2a               delete it permanently
    isthmus tasks prune --older-than 30d    delete tasks that ended more than 30 days ago
    """


_DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of the stored tasks. Default: your data folder.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@command.command("list")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only tasks in this state. Repeatable.")
@click.option("--user", metavar="NAME", help="Only tasks of this user of a server; '' are your own.")
@click.option("--limit", type=click.IntRange(min=1), default=LISTED, help=f"Maximum number shown. Default: {LISTED}.")
@_JSON
@_DATA_DIR
@journal_option
def list_(
    states: tuple[str, ...], user: str | None, limit: int, as_json: bool, data_dir: Path | None, journal: str
) -> None:
    """List tasks, last changed first.

    The states are submitted, working, input-required (it waits for an answer), completed, failed and canceled. The
    tasks of agents that `isthmus serve --agent` and `isthmus acp --agent` host are listed after yours, each agent with
    its folder: other commands find them with --data-dir FOLDER.
    """
    from isthmus.cli.output.task_table import task_json, task_lines
    from isthmus.events import TaskState

    for state in states:
        if state not in tuple(TaskState):
            raise BadInputError(f"unknown --state {state!r}; expected one of {', '.join(TaskState)}")

    async def read(journal: "Journal") -> "Sequence[TaskRow]":
        return await journal.tasks(limit, [TaskState(state) for state in states], user)

    stored = _stored(data_dir, journal)
    rows = _with_journal(stored, read) if stored.exists else ()
    hosting = () if journal else stored.files.of_hosted_agents()
    hosted = {files.data_dir: _with_journal(_Stored(files, ""), read) for files in hosting}
    if as_json:
        listed = [task_json(row) for row in rows]
        listed += [{**task_json(row), "data_dir": str(folder)} for folder, own in hosted.items() for row in own]
        click.echo(json.dumps(listed, ensure_ascii=False, indent=2))
        return
    lines = task_lines(rows, time.time())
    for folder, own in hosted.items():
        if own:
            lines += [*([""] if lines else []), f"Hosted agent {folder.name}, --data-dir {shlex.quote(str(folder))}:"]
            lines += task_lines(own, time.time())
    _print(lines or ["No tasks."])


@command.command("show")
@click.argument("task_id", metavar="ID")
@_JSON
@_DATA_DIR
@journal_option
def show(task_id: str, as_json: bool, data_dir: Path | None, journal: str) -> None:
    """Show one task: its state, what it waits for, its conversation and its artifacts."""
    from isthmus.cli.output.task_table import detail_json, detail_lines
    from isthmus.engine.requests.asking import artifacts_of, history_of

    async def read(
        journal: "Journal",
    ) -> "tuple[TaskRow, Sequence[HistoryMessage], Sequence[PushRow], Sequence[ArtifactUpdate]]":
        row = (await _named(journal, [task_id]))[0]
        history = history_of(await journal.messages(row.task_id, SHOWN_MESSAGES))
        artifacts = artifacts_of(await journal.artifacts(row.task_id))
        return row, history, await journal.pushes.of_task(row.task_id), artifacts

    found = _with_journal(_existing(data_dir, journal), read)
    if as_json:
        click.echo(json.dumps(detail_json(*found), ensure_ascii=False, indent=2))
    else:
        _print(detail_lines(*found))


@command.command("export")
@click.argument("task_id", metavar="ID")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write it to this file, readable by you only, instead of to standard output.",
)
@_DATA_DIR
@journal_option
def export(task_id: str, output: Path | None, data_dir: Path | None, journal: str) -> None:
    """Print everything that is stored of a task as JSON Lines: a header with the task, then its events in order."""
    stored = _existing(data_dir, journal)

    async def find(journal: "Journal") -> "TaskRow":
        return (await _named(journal, [task_id]))[0]

    row = _with_journal(stored, find)
    if output is None:
        _with_journal(stored, lambda journal: _export(journal, row, sys.stdout))
        return
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            _with_journal(stored, lambda journal: _export(journal, row, file))
    except OSError as error:
        raise TasksError(f"{output} cannot be written ({error.strerror}); name another file with -o") from error


async def _export(journal: "Journal", row: "TaskRow", file: TextIO) -> None:
    from isthmus.cli.output.task_table import task_json
    from isthmus.events import event_to_json

    def say(value: object) -> None:
        file.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")

    say({"type": "isthmus.task", "format": EXPORT_FORMAT, "task": task_json(row)})
    after = 0
    while batch := await journal.events(row.task_id, after, EXPORT_ROWS):
        for item in batch:
            say({"seq": item.seq, "at": item.at, "event": event_to_json(item.event)})
        after = batch[-1].seq or 0


@command.command("delete")
@click.argument("task_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--force", is_flag=True, help="Cancel tasks at work first, wherever they run.")
@_DATA_DIR
@journal_option
def delete(task_ids: tuple[str, ...], force: bool, data_dir: Path | None, journal: str) -> None:
    """Delete tasks permanently, with their outputs and checkpoints; a question that waits in them is lost, too.

    When one of them is at work, none is deleted: cancel it where it runs, or use --force. The conversations of other
    tasks of the same session stay. The beginning of an id is enough when only one task has it.
    """
    stored = _existing(data_dir, journal)

    async def work(journal: "Journal") -> Sequence[str]:
        rows = await _named(journal, task_ids)
        working = [row.task_id for row in rows if not row.state.ends_stream]
        if working and not force:
            raise TasksError(
                f"still working: {', '.join(working)}. Nothing was deleted; cancel it where it runs, or use --force."
            )
        if working:
            await _cancel(journal, working)
        return await _delete(journal, stored.files, [row.task_id for row in rows])

    _print([f"Deleted {task_id}." for task_id in _with_journal(stored, work)])


async def _delete(journal: "Journal", files: TaskFiles, task_ids: Sequence[str]) -> Sequence[str]:
    from isthmus.engine.port.retention import Retention

    removed = await Retention(journal, files.delete).delete(task_ids, also_waiting=True)
    await _erase(journal)
    if left := [task_id for task_id in task_ids if task_id not in removed]:
        raise TasksError(f"not deleted because they work again: {', '.join(left)}. Try again.")
    return removed


async def _cancel(journal: "Journal", task_ids: Sequence[str]) -> None:
    from isthmus.client import TaskNotCancelable
    from isthmus.engine.port.options import EngineOptions
    from isthmus.engine.runs.runner import Runner

    runner = Runner(_NoAgent(), journal, EngineOptions(takes_over=False))
    try:
        async with asyncio.timeout(CANCEL_SECONDS):
            for task_id in task_ids:
                try:
                    await runner.cancel(task_id)
                except TaskNotCancelable:
                    continue  # It has ended in the meantime.
    except TimeoutError as error:
        raise TasksError(
            f"not all of {', '.join(task_ids)} stopped within {CANCEL_SECONDS:g} s; nothing was deleted. Try again."
        ) from error


class _NoAgent:
    """Placeholder for the agent of a runner that only cancels tasks."""

    async def advance(self, turn: "AgentTurn") -> "StateChange":
        """Raise RuntimeError: a task that is cancelled before it starts is never run."""
        raise RuntimeError(f"a command that runs no tasks was asked to run task {turn.session.task_id}")


@command.command("prune")
@click.option("--older-than", metavar="AGE", help="Tasks that ended longer ago than this: 30d, 12h, 2w.")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="All ended tasks except the N that changed last.")
@click.option("--max-size", metavar="SIZE", help="Those that ended first, until the journal fits: 500MB, 1GiB.")
@click.option("--dry-run", is_flag=True, help="Only list what --older-than and --keep would delete.")
@_DATA_DIR
@journal_option
def prune(
    older_than: str | None, keep: int | None, max_size: str | None, dry_run: bool, data_dir: Path | None, journal: str
) -> None:
    """Delete old tasks permanently.

    Tasks that work or wait for an answer are never deleted, nor are ended tasks of their sessions. When --older-than
    and --keep are both given, only tasks that match both are deleted; --max-size applies afterwards.
    """
    if older_than is None and keep is None and max_size is None:
        raise BadInputError("say what to delete: --older-than 30d, --keep 100 or --max-size 500MB")
    if dry_run and max_size is not None:
        raise BadInputError("--dry-run can be used only with --older-than and --keep")
    try:
        until = None if older_than is None else time.time() - parse_age(older_than)
        size = None if max_size is None else parse_size(max_size)
    except AmountError as error:
        raise BadInputError(str(error)) from error
    stored = _stored(data_dir, journal)

    async def work(journal: "Journal") -> None:
        found: Sequence[TaskRow] = ()
        if older_than is not None or keep is not None:
            found = await journal.removal.ended(ALL, newest=keep or 0, until=until)
        await _prune(journal, stored.files, found, size, dry_run=dry_run)

    if stored.exists:
        _with_journal(stored, work)
    else:
        click.echo("No tasks.")


async def _prune(
    journal: "Journal", files: TaskFiles, found: "Sequence[TaskRow]", size: int | None, *, dry_run: bool
) -> None:
    from isthmus.cli.output.task_table import task_lines
    from isthmus.engine.port.retention import Retention

    if dry_run:
        _print(task_lines(found, time.time()) or ["Nothing would be deleted."])
        return
    before = await journal.removal.size()
    retention = Retention(journal, files.delete, size, target=1)
    removed = [*await retention.delete([row.task_id for row in found]), *await retention.hold_size()]
    await _erase(journal)
    after = await journal.removal.size()
    click.echo(f"Deleted {show_count(len(removed), 'task')} ({show_size(before)} -> {show_size(after)}).")
    if retention.is_full:
        click.echo("The remaining tasks work, wait for an answer, or belong to a session that does.", err=True)


async def _named(journal: "Journal", beginnings: Sequence[str]) -> "Sequence[TaskRow]":
    """Return the tasks whose ids start with each of `beginnings`, each task once."""
    rows: dict[str, TaskRow] = {}
    for beginning in beginnings:
        found: Sequence[TaskRow] = await journal.find(beginning, 5) if beginning else ()
        exact = [row for row in found if row.task_id == beginning] or found
        if not exact:
            raise TasksError(f"there is no task {beginning!r}; `isthmus tasks list` shows their ids")
        if len(exact) > 1:
            ids = ", ".join(row.task_id for row in exact)
            raise TasksError(f"several tasks begin with {beginning!r}: {ids}, ...; give more of the id")
        rows[exact[0].task_id] = exact[0]
    return list(rows.values())


async def _erase(journal: "Journal") -> None:
    if not await journal.removal.erase():
        click.echo("The journal is being read: copies of what was deleted stay in its log until that ends.", err=True)


@record
class _Stored:
    """The place of stored tasks: files of a data folder, and a database unless ``url`` is empty."""

    files: TaskFiles
    url: str

    @property
    def exists(self) -> bool:
        """Whether there may be tasks."""
        return bool(self.url) or self.files.journal.exists()


def _stored(data_dir: Path | None, journal: str) -> _Stored:
    return _Stored(TaskFiles(data_directory(GivenOptions(data_dir=data_dir))), journal)


def _existing(data_dir: Path | None, journal: str) -> _Stored:
    stored = _stored(data_dir, journal)
    if not stored.exists:
        raise TasksError(f"no tasks are stored in {stored.files.data_dir}. Name another folder with --data-dir.")
    return stored


def _with_journal(stored: _Stored, work: "Callable[[Journal], Awaitable[T]]") -> T:
    async def run() -> T:
        async with _open(stored) as journal:
            return await work(journal)

    return asyncio.run(run())


@asynccontextmanager
async def _open(stored: _Stored) -> "AsyncGenerator[Journal]":
    from isthmus.journal.opening import open_journal

    journal = await open_journal(stored.files.journal, stored.url)
    try:
        yield journal
    finally:
        await journal.aclose()


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(line)
