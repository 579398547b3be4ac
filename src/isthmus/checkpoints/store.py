"""The embedded store of checkpoints: one SQLite file with mode 0600, which keeps each content once, by its hash.

Limits: a file of more than 20 MiB is recorded without its content; all compressed content together stays below 512 MiB,
for which the oldest checkpoints are dropped. Deleted content is overwritten on the disk.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from typing_extensions import override

from isthmus.checkpoints.base import (
    CheckpointError,
    CheckpointFor,
    CheckpointInfo,
    Checkpoints,
    RestorePlan,
    RestoreReport,
)
from isthmus.checkpoints.file_state import FileState, UnkeptError, put_back, read_state
from isthmus.checkpoints.planning import KnownFile, plan_restore
from isthmus.encoding.codec import from_json, to_json
from isthmus.files.atomic import FileChangedError
from isthmus.files.databases import roll_back
from isthmus.files.locations import make_private_directory

T = TypeVar("T")

MAXIMUM_TOTAL_BYTES = 512 * 1024 * 1024
"""Maximum size in bytes of all content together, compressed."""
BUSY_SECONDS = 10.0
"""Maximum wait in seconds for another process that writes to the store."""
_TABLES = """
CREATE TABLE IF NOT EXISTS contents (hash TEXT PRIMARY KEY, data BLOB NOT NULL, size INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS checkpoints (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    context TEXT NOT NULL,
    task TEXT NOT NULL,
    call TEXT NOT NULL,
    taken REAL NOT NULL,
    about TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS checkpoints_by_context ON checkpoints (context, number);
CREATE INDEX IF NOT EXISTS checkpoints_by_task ON checkpoints (task);
CREATE TABLE IF NOT EXISTS files (
    checkpoint INTEGER NOT NULL REFERENCES checkpoints (number) ON DELETE CASCADE,
    path TEXT NOT NULL,
    before TEXT NOT NULL,
    before_hash TEXT,
    after TEXT,
    PRIMARY KEY (checkpoint, path)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS files_by_content ON files (before_hash);
"""

log = logging.getLogger(__name__)


class CheckpointStore(Checkpoints):
    """Store of checkpoints in one file, which several processes may use."""

    def __init__(self, path: Path, maximum_total_bytes: int = MAXIMUM_TOTAL_BYTES) -> None:
        self._path = path
        self._maximum = maximum_total_bytes
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    @override
    async def take(self, reason: CheckpointFor, paths: Sequence[Path]) -> str:
        return await self._run(lambda connection: self._take(connection, reason, paths))

    @override
    async def edited(self, checkpoint_id: str) -> None:
        await self._run(lambda connection: self._edited(connection, checkpoint_id))

    @override
    async def list(self, context_id: str) -> Sequence[CheckpointInfo]:
        return await self._run(lambda connection: self._list(connection, context_id))

    @override
    async def before(self, context_id: str) -> Mapping[str, bytes | None]:
        return await self._run(lambda connection: self._before(connection, context_id))

    @override
    async def plan(self, context_id: str, checkpoint_id: str) -> RestorePlan:
        return await self._run(lambda connection: self._plan(connection, context_id, checkpoint_id)[0])

    @override
    async def restore(self, reason: CheckpointFor, checkpoint_id: str) -> RestoreReport:
        return await self._run(lambda connection: self._restore(connection, reason, checkpoint_id))

    @override
    async def delete(self, task_ids: Sequence[str]) -> None:
        if task_ids and self._path.exists():
            await self._run(lambda connection: self._delete(connection, task_ids))

    @override
    async def aclose(self) -> None:
        def close() -> None:
            with self._lock:
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None

        await asyncio.to_thread(close)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def locked() -> T:
            with self._lock:
                try:
                    return work(self._open())
                except (sqlite3.Error, OSError, ValueError, zlib.error) as error:
                    broken = isinstance(error, sqlite3.DatabaseError) and not isinstance(
                        error, sqlite3.OperationalError
                    )
                    remedy = ". Move that file away, and a new one is created" if broken else ""
                    raise CheckpointError(f"the checkpoints in {self._path} cannot be used: {error}{remedy}") from error

        # A started operation always finishes: a cancelled wait must not leave only some files restored.
        return await asyncio.shield(asyncio.to_thread(locked))

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            make_private_directory(self._path.parent)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            connection = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None
            )
            try:
                connection.executescript(
                    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON;"
                    f"PRAGMA foreign_keys=ON; {_TABLES}"
                )
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _take(self, connection: sqlite3.Connection, reason: CheckpointFor, paths: Sequence[Path]) -> str:
        checkpoint_id = uuid.uuid4().hex[:10]
        states = [(path, *read_state(path)) for path in dict.fromkeys(paths)]
        with _transaction(connection):
            number = connection.execute(
                "INSERT INTO checkpoints (id, context, task, call, taken, about) VALUES (?, ?, ?, ?, ?, ?)",
                (checkpoint_id, reason.context_id, reason.task_id, reason.tool_call_id, time.time(), reason.about),
            ).lastrowid
            for path, state, data in states:
                if state.hash is not None and data is not None:
                    packed = zlib.compress(data, 1)
                    connection.execute(
                        "INSERT OR IGNORE INTO contents VALUES (?, ?, ?)", (state.hash, packed, len(packed))
                    )
                row = (number, str(path), _pack(state), state.hash)
                connection.execute("INSERT INTO files (checkpoint, path, before, before_hash) VALUES (?, ?, ?, ?)", row)
            self._make_room(connection, checkpoint_id)
        return checkpoint_id

    def _make_room(self, connection: sqlite3.Connection, newest: str) -> None:
        """Drop the oldest checkpoints, but never the newest, until the content is small enough."""
        dropped = 0
        while _value(connection, "SELECT coalesce(sum(size), 0) FROM contents") > self._maximum:
            oldest = connection.execute(
                "SELECT number FROM checkpoints WHERE id != ? ORDER BY number LIMIT 1", (newest,)
            ).fetchone()
            if oldest is None:
                break
            connection.execute("DELETE FROM checkpoints WHERE number = ?", oldest)
            _remove_unused(connection)
            dropped += 1
        if dropped:
            log.warning("%d old checkpoints were dropped to keep all content below %d bytes", dropped, self._maximum)

    def _edited(self, connection: sqlite3.Connection, checkpoint_id: str) -> None:
        rows = connection.execute(
            "SELECT checkpoint, path FROM files JOIN checkpoints ON number = checkpoint WHERE id = ?",
            (checkpoint_id,),
        ).fetchall()
        with _transaction(connection):
            for number, path in rows:
                state, _ = read_state(Path(path))
                connection.execute(
                    "UPDATE files SET after = ? WHERE checkpoint = ? AND path = ?", (_pack(state), number, path)
                )

    def _list(self, connection: sqlite3.Connection, context_id: str) -> Sequence[CheckpointInfo]:
        rows = connection.execute(
            "SELECT id, taken, call, about, (SELECT json_group_array(path) FROM files WHERE checkpoint = number)"
            " FROM checkpoints WHERE context = ? ORDER BY number DESC",
            (context_id,),
        )
        return [
            CheckpointInfo(checkpoint_id, taken, call, about, tuple(json.loads(paths)))
            for checkpoint_id, taken, call, about, paths in rows
        ]

    def _before(self, connection: sqlite3.Connection, context_id: str) -> Mapping[str, bytes | None]:
        rows = connection.execute(
            "SELECT path, before FROM files JOIN checkpoints ON number = checkpoint WHERE context = ?"
            " ORDER BY number DESC",
            (context_id,),
        )
        first = {path: _unpack(before) for path, before in rows}
        return {path: self._content(connection, state) for path, state in first.items()}

    def _plan(
        self, connection: sqlite3.Connection, context_id: str, checkpoint_id: str
    ) -> tuple[RestorePlan, dict[str, KnownFile]]:
        found = connection.execute(
            "SELECT number FROM checkpoints WHERE context = ? AND id = ?", (context_id, checkpoint_id)
        ).fetchone()
        if found is None:
            raise CheckpointError(
                f"this session has no checkpoint {checkpoint_id[:100]!r}; it may have been dropped for its age."
                " See the list of existing ones."
            )
        rows = connection.execute(
            "SELECT path, before, after FROM files JOIN checkpoints ON number = checkpoint"
            " WHERE context = ? AND number >= ? ORDER BY number",
            (context_id, found[0]),
        )
        edits: dict[str, tuple[str, str | None]] = {}
        for path, before, after in rows:
            first, _ = edits.get(path, (before, None))
            edits[path] = (first, after)
        known = {
            path: KnownFile(_unpack(before), None if after is None else _unpack(after), read_state(Path(path))[0])
            for path, (before, after) in edits.items()
        }
        return plan_restore(checkpoint_id, known), known

    def _restore(self, connection: sqlite3.Connection, reason: CheckpointFor, checkpoint_id: str) -> RestoreReport:
        plan, known = self._plan(connection, reason.context_id, checkpoint_id)
        possible = [file for file in plan.files if file.reason is None]
        problems = [f"{file.path}: {file.reason}" for file in plan.files if file.reason is not None]
        if not possible:
            return RestoreReport((), problems=tuple(problems))
        # Read first: making room for the undo checkpoint may drop this content.
        contents = {file.path: self._content(connection, known[file.path].target) for file in possible}
        undo_id = self._take(connection, reason, [Path(file.path) for file in possible])
        kept = {
            path: _unpack(before)
            for path, before in connection.execute(
                "SELECT path, before FROM files JOIN checkpoints ON number = checkpoint WHERE id = ?", (undo_id,)
            )
        }
        done = list(possible)
        for file in possible:
            target, now = known[file.path].target, kept[file.path]
            try:
                put_back(Path(file.path), target, contents[file.path], now, self._content(connection, now))
            except (OSError, UnkeptError, FileChangedError) as error:
                problems.append(f"{file.path}: {error}")
                done.remove(file)
        self._edited(connection, undo_id)
        return RestoreReport(tuple(done), undo_id, tuple(problems))

    def _content(self, connection: sqlite3.Connection, state: FileState) -> bytes | None:
        """Return the content of a state; None if it has none, or if the stored content is damaged."""
        if state.hash is None:
            return None
        row = connection.execute("SELECT data FROM contents WHERE hash = ?", (state.hash,)).fetchone()
        data = None if row is None else zlib.decompress(row[0])
        return data if data is not None and hashlib.sha256(data).hexdigest() == state.hash else None

    def _delete(self, connection: sqlite3.Connection, task_ids: Sequence[str]) -> None:
        with _transaction(connection):
            connection.executemany("DELETE FROM checkpoints WHERE task = ?", [(task_id,) for task_id in task_ids])
            _remove_unused(connection)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        roll_back(connection)
        raise
    connection.execute("COMMIT")


def _remove_unused(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM contents WHERE NOT EXISTS (SELECT 1 FROM files WHERE before_hash = contents.hash)")


def _value(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]


def _pack(state: FileState) -> str:
    return json.dumps(to_json(state))


def _unpack(text: str) -> FileState:
    return from_json(FileState, json.loads(text))
