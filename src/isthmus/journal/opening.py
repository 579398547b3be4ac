"""Opens an agent's journal, a file of its data folder or a database, to work with it or to read it whole."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.journal.place import JournalPlace
    from isthmus.journal.port.base import Journal
    from isthmus.journal.sql.snapshot import Snapshot


async def open_journal(file: Path, url: str = "", agent: Sequence[str] = ()) -> "Journal":
    """Open the journal in the database ``url``, or in ``file`` if that is empty.

    ``agent`` is the name of the agent that runs its tasks, then its former names.

    Raises:
        JournalError: it cannot be used; it is unchanged.
    """
    if url:
        from isthmus.journal.postgres.journal import PostgresJournal

        return await PostgresJournal.open(url, agent=agent)
    from isthmus.journal.sqlite.journal import SqliteJournal

    return await SqliteJournal.open(file, agent=agent)


@asynccontextmanager
async def snapshot_of(place: "JournalPlace", *, alone: bool = False) -> "AsyncGenerator[Snapshot]":
    """Open a journal as it is now. With ``alone`` no process works with it, and none begins to until this ends.

    Raises:
        JournalError: there is no journal, it cannot be read or has a newer version, or with ``alone``, a process works
            with it.
    """
    if place.url:
        from isthmus.journal.postgres.snapshot import postgres_snapshot

        async with postgres_snapshot(place.url, alone=alone) as snapshot:
            yield snapshot
    else:
        from isthmus.journal.sqlite.snapshot import sqlite_snapshot

        async with sqlite_snapshot(place.file, alone=alone) as snapshot:
            yield snapshot
