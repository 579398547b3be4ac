"""Copies of whole journals, from a file or database to another: tasks, events, messages, inboxes, pushes and chats.

A copy is complete or not there: a file is written beside its place and put there at the end, a database gets all in one
transaction. Leases, and who sends a push, are not copied: the first process that works with the copy takes the tasks.
"""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from isthmus.journal.opening import snapshot_of
from isthmus.journal.place import JournalPlace
from isthmus.journal.port.base import JournalError
from isthmus.journal.sql.copy_target import COUNTS, Copied, OnProgress, Target
from isthmus.journal.sql.snapshot import Snapshot, check_current
from isthmus.journal.sql.tables import EVENTS, TABLES


async def copy_journal(source: JournalPlace, target: JournalPlace, on_progress: OnProgress | None = None) -> Copied:
    """Copy a journal to a place where none is.

    Processes may go on working with the source if both are files: the copy has the moment at which it began.

    Raises:
        JournalError: the source is not a journal, the target is not empty, a process works with one of them, or one of
            them cannot be read or written. Nothing is left at the target then.
    """
    notify = on_progress or _ignore
    if not source.url and not target.url:
        from isthmus.journal.sqlite.copying import back_up

        return await back_up(source.file, target.file, notify)
    async with snapshot_of(source, alone=True) as snapshot:
        check_current(snapshot)
        async with _target(target, await snapshot.agent()) as opened:
            return await _copy(snapshot, opened, notify)


def _target(place: JournalPlace, agent: str | None) -> AbstractAsyncContextManager[Target]:
    if place.url:
        from isthmus.journal.postgres.copying import postgres_target

        return postgres_target(place.url, agent)
    from isthmus.journal.sqlite.copying import sqlite_target

    return sqlite_target(Path(place.file), agent)


async def _copy(snapshot: Snapshot, target: Target, notify: OnProgress) -> Copied:
    (found,) = await snapshot.read(COUNTS)
    tasks, total = int(found[0]), int(found[1])
    done = replaced = 0
    for table in TABLES:
        async for rows in snapshot.rows(table):
            replaced += await target.write(table, rows)
            done += len(rows) if table is EVENTS else 0
            notify(min(done, total), total)
    await target.finish(started=await started_tag(snapshot))
    return Copied(tasks, total, replaced)


async def started_tag(snapshot: Snapshot) -> int:
    """Return the start tag of the task that left the queue last.

    Raises:
        JournalError: the table of it is damaged.
    """
    found = await snapshot.read("SELECT started FROM queue")
    if len(found) != 1:
        raise JournalError(f"the table queue of {snapshot.name} has {len(found)} rows; expected one")
    return int(found[0][0])


def _ignore(done: int, total: int) -> None:
    del done, total
