"""The state of a journal for operators: what is in it, and which processes work with it. Nothing is changed."""

from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.journal.opening import snapshot_of
from isthmus.journal.place import JournalPlace
from isthmus.journal.sql.processes import Process
from isthmus.journal.sql.rows import DELETED
from isthmus.journal.sql.snapshot import Snapshot
from isthmus.record import record


@record
class JournalStatus:
    """A journal at one moment. Times are Unix seconds, ``size`` is that of its files in bytes.

    ``queued`` is the number of tasks that wait for a free slot, ``oldest`` is since when the first of them does. Both
    are None in a journal that is too old to have a queue.
    """

    name: str
    version: int
    newest: int
    agent: str | None
    size: int
    tasks: Mapping[str, int]
    events: int
    queued: int | None
    oldest: float | None
    pushes: Mapping[str, int]
    processes: Sequence[Process]


async def status_of(place: JournalPlace) -> JournalStatus:
    """Return the state of a journal, also of an older version.

    Raises:
        JournalError: there is no journal, it cannot be read, or it is newer.
    """
    async with snapshot_of(place) as snapshot:
        tasks = await snapshot.read("SELECT state, count(*) FROM tasks GROUP BY state ORDER BY state")
        events = await snapshot.read(f"SELECT coalesce(sum(seq), 0) FROM tasks WHERE state <> '{DELETED}'")
        queue: Sequence[Sequence[Any]] = ()
        if await snapshot.has("queue"):
            queue = await snapshot.read("SELECT count(*), min(updated) FROM tasks WHERE tag > 0")
        return JournalStatus(
            snapshot.name,
            snapshot.version,
            snapshot.newest,
            await snapshot.agent(),
            await snapshot.size(),
            {str(state): int(count) for state, count in tasks},
            int(events[0][0]),
            int(queue[0][0]) if queue else None,
            queue[0][1] if queue else None,
            await _pushes(snapshot),
            await snapshot.processes(),
        )


async def _pushes(snapshot: Snapshot) -> Mapping[str, int]:
    if not await snapshot.has("pushes"):
        return {}
    rows = await snapshot.read("SELECT state, count(*) FROM pushes GROUP BY state ORDER BY state")
    return {str(state): int(count) for state, count in rows}
