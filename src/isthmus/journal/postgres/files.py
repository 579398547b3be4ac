"""The files of tasks in a database: :class:`~isthmus.journal.port.task_files.TaskFileStore`.

They pass by the connections that read, so that the commits of events do not wait for megabytes.
"""

import time
from collections.abc import Sequence

from typing_extensions import override

from isthmus.journal.port.task_files import MAXIMUM_FILE_BYTES, MAXIMUM_FOUND, StoredFile, TaskFileStore
from isthmus.journal.postgres.statements import storable
from isthmus.journal.sql.reads import RowReader

SWEEP_SECONDS = 3600.0
"""Time in seconds between removals of files whose task is not there, and their age at which they are removed."""
MAXIMUM_FOLDERS = 32
"""Maximum number of folders of a file."""

_KEEP = (
    "INSERT INTO files (task, name, folders, data) VALUES (?, ?, ARRAY[CAST(? AS text)], ?)"
    " ON CONFLICT (task, name) DO UPDATE SET data = excluded.data"
    " WHERE files.folders[1] = excluded.folders[1] AND octet_length(files.data) < octet_length(excluded.data)"
    " RETURNING 1"
)
_FIND = (
    "SELECT task, name, octet_length(data), folders[1:32] FROM files WHERE task = ANY(CAST(? AS text[]))"
    " AND name = ANY(CAST(? AS text[])) ORDER BY task, name LIMIT ?"
)
_READ = "SELECT data FROM files WHERE task = ? AND name = ? AND octet_length(data) <= ?"
_ADD_FOLDER = (
    "UPDATE files SET folders = array_append(folders, added.folder) FROM (SELECT CAST(? AS text) AS folder) AS added"
    " WHERE (task, name) IN (SELECT * FROM unnest(CAST(? AS text[]), CAST(? AS text[])))"
    " AND NOT added.folder = ANY(folders) AND cardinality(folders) < ? RETURNING 1"
)
_SWEEP = (
    "DELETE FROM files WHERE kept < now() - make_interval(secs => ?)"
    " AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = files.task) RETURNING 1"
)


class PostgresFiles(TaskFileStore):
    """The table of files, by statements that ``read`` runs, each in a transaction of its own."""

    def __init__(self, read: RowReader) -> None:
        self._read = read
        self._swept: float | None = None

    @override
    async def keep(self, task_id: str, name: str, folder: str, data: bytes) -> None:
        await self._read(_KEEP, (task_id, name, storable(folder), data), len)
        now = time.monotonic()
        if self._swept is None or now - self._swept > SWEEP_SECONDS:
            # Those of messages that were refused after all, or whose server died before it had recorded them.
            self._swept = now
            await self._read(_SWEEP, (SWEEP_SECONDS,), len)

    @override
    async def find(self, task_ids: Sequence[str], names: Sequence[str]) -> Sequence[StoredFile]:
        values = ([*task_ids], [*names], MAXIMUM_FOUND)
        return await self._read(
            _FIND, values, lambda row: StoredFile(str(row[0]), str(row[1]), int(row[2]), tuple(map(str, row[3])))
        )

    @override
    async def read(self, task_id: str, name: str) -> bytes | None:
        found = await self._read(_READ, (task_id, name, MAXIMUM_FILE_BYTES), lambda row: bytes(row[0]))
        return found[0] if found else None

    @override
    async def add_folder(self, files: Sequence[StoredFile], folder: str) -> None:
        tasks, names = [file.task_id for file in files], [file.name for file in files]
        await self._read(_ADD_FOLDER, (storable(folder), tasks, names, MAXIMUM_FOLDERS), len)
