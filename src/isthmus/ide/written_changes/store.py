"""Store of the review after the fact: a SQLite file with mode 0600 in the companion's folder, one for each workspace.

It has the content of each followed file as it was seen last, each content once, and the ledger. Every change is one
transaction, so that a companion that was killed leaves the state before or after it. While a companion runs, it alone
has the file open. Blocks.
"""

import contextlib
import hashlib
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from isthmus.files.databases import roll_back
from isthmus.files.locations import make_private_directory
from isthmus.ide.written_changes.disk_files import FileStatus

MAXIMUM_TOTAL_BYTES: Final = 256 * 1024 * 1024
"""Maximum size in bytes of all contents together, before compression."""
MAXIMUM_COMPANIONS: Final = 16
"""Maximum number of companions of one editor and workspace that each have a store."""
MAXIMUM_AGE_SECONDS: Final = 30 * 24 * 3600.0
"""Age in seconds after which the store of a workspace that no companion opened is removed."""
_LEVEL: Final = 1
_VERSION: Final = 1
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS contents (digest TEXT PRIMARY KEY, data BLOB NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (
    path TEXT PRIMARY KEY, modified INTEGER NOT NULL, size INTEGER NOT NULL, inode INTEGER NOT NULL,
    mode INTEGER NOT NULL, private INTEGER NOT NULL, digest TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS seen_by_digest ON seen (digest);
CREATE TABLE IF NOT EXISTS changed (path TEXT PRIMARY KEY, woven BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS intended (path TEXT PRIMARY KEY, digest TEXT, woven BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


class Store:
    """An open store."""

    def __init__(self, path: Path, connection: sqlite3.Connection, closed_at: float) -> None:
        self.path = path
        self.closed_at = closed_at
        """Last sign of life of the companion that had it open before, in Unix time."""
        self._connection = connection
        self.stored_bytes: int = connection.execute("SELECT coalesce(sum(size), 0) FROM contents").fetchone()[0]
        """Size in bytes of all contents."""

    @contextlib.contextmanager
    def transaction(self) -> "Generator[None]":
        """Make all changes of the block, or none of them."""
        size = self.stored_bytes
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            roll_back(self._connection)
            self.stored_bytes = size
            raise
        self._connection.execute("COMMIT")

    # Contents.

    def add(self, digest: str, data: bytes) -> None:
        """Store a content."""
        packed = zlib.compress(data, _LEVEL)
        done = self._connection.execute("INSERT OR IGNORE INTO contents VALUES (?, ?, ?)", (digest, packed, len(data)))
        self.stored_bytes += len(data) if done.rowcount else 0

    def content(self, digest: str) -> bytes | None:
        """Return a content; None if it is not stored, or damaged."""
        row = self._connection.execute("SELECT data FROM contents WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            return None
        with contextlib.suppress(zlib.error):
            data = zlib.decompress(row[0])
            if hashlib.sha256(data).hexdigest() == digest:
                return data
        return None

    def forget_unless_needed(self, digests: Iterable[str], needed: "Iterable[str]") -> None:
        """Remove contents that no file was seen with last, unless they are ``needed``."""
        kept = set(needed)
        for digest in digests:
            if digest in kept or self._connection.execute("SELECT 1 FROM seen WHERE digest = ?", (digest,)).fetchone():
                continue
            row = self._connection.execute("DELETE FROM contents WHERE digest = ? RETURNING size", (digest,)).fetchone()
            self.stored_bytes -= row[0] if row else 0

    # Files as they were seen last.

    def seen(self) -> "dict[str, tuple[FileStatus, str]]":
        """Return the status and digest of every followed file."""
        rows = self._connection.execute("SELECT path, modified, size, inode, mode, private, digest FROM seen")
        return {
            path: (FileStatus(modified, size, inode, mode, 0, bool(private)), digest)
            for path, modified, size, inode, mode, private, digest in rows
        }

    def see(self, path: str, status: FileStatus, digest: str) -> None:
        """Record how a file was seen."""
        values = (path, status.modified_ns, status.size, status.inode, status.mode, status.is_private, digest)
        self._connection.execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def unsee(self, path: str) -> None:
        """Record that a file has gone."""
        self._connection.execute("DELETE FROM seen WHERE path = ?", (path,))

    # The ledger.

    def changed(self) -> "dict[str, Any]":
        """Return the changed files as JSON values."""
        return {path: _unpack(woven) for path, woven in self._connection.execute("SELECT path, woven FROM changed")}

    def save_changed(self, path: str, woven: Sequence[Any] | None) -> None:
        """Store a changed file; None removes it."""
        if woven is None:
            self._connection.execute("DELETE FROM changed WHERE path = ?", (path,))
        else:
            self._connection.execute("INSERT OR REPLACE INTO changed VALUES (?, ?)", (path, _pack(woven)))

    def intend(self, path: str, digest: str | None, woven: Sequence[Any]) -> None:
        """Store what a file is to become, before it is written; ``digest`` is its content's, None for no file."""
        self._connection.execute("INSERT OR REPLACE INTO intended VALUES (?, ?, ?)", (path, digest, _pack(woven)))

    def intended(self) -> "list[tuple[str, str | None, Any]]":
        """Return what files were to become when the companion was killed."""
        rows = self._connection.execute("SELECT path, digest, woven FROM intended").fetchall()
        return [(path, digest, _unpack(woven)) for path, digest, woven in rows]

    def forget_intended(self) -> None:
        """Forget what files were to become."""
        self._connection.execute("DELETE FROM intended")

    def state(self) -> dict[str, Any]:
        """Return the values of :meth:`save_state` by name."""
        return {name: json.loads(value) for name, value in self._connection.execute("SELECT name, value FROM state")}

    def save_state(self, values: Mapping[str, Any]) -> None:
        """Store values under names, in JSON."""
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        self._connection.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", rows)

    # The end.

    def touch(self) -> None:
        """Give a sign of life."""
        with contextlib.suppress(OSError):
            os.utime(self.path)

    def close(self, *, remove: bool = False) -> None:
        """Close the store, and remove its file if nothing in it is needed any longer."""
        if remove:
            for name in (self.path, *_beside(self.path)):
                with contextlib.suppress(OSError):
                    name.unlink()
        self._connection.close()


def open_store(folder: Path, editor: str, workspace_folders: Sequence[str]) -> Store:
    """Open the store of an editor's workspace, or another one if a second companion of both has it open.

    Old stores of other workspaces are removed. A damaged store is replaced by an empty one.

    Raises:
        OSError: the folder cannot be written, or too many companions have stores.
        sqlite3.Error: no store can be made there.
    """
    make_private_directory(folder)
    identity = "\0".join([editor, *sorted(workspace_folders)])
    key = hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()[:16]
    _remove_old(folder, key)
    for number in range(MAXIMUM_COMPANIONS):
        path = folder / f"{key}-{number}.db"
        try:
            return _open(path)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
        except (sqlite3.DatabaseError, ValueError):
            for name in (path, *_beside(path)):
                with contextlib.suppress(OSError):
                    name.unlink()
            return _open(path)
    raise OSError(f"{MAXIMUM_COMPANIONS} companions have stores of this workspace already")


def has_store(folder: Path, editor: str, workspace_folders: Sequence[str]) -> bool:
    """Return whether an earlier companion left something to review."""
    identity = "\0".join([editor, *sorted(workspace_folders)])
    key = hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()[:16]
    return any(folder.glob(f"{key}-*.db"))


def _open(path: Path) -> Store:
    closed_at = path.stat().st_mtime if path.exists() else 0.0
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    # One thread at a time uses it, though not always the same one.
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, _VERSION):
            raise ValueError("of another version")
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
        return Store(path, connection, closed_at)
    except BaseException:
        connection.close()
        raise


def _remove_old(folder: Path, own: str) -> None:
    for path in folder.glob("*.db"):
        with contextlib.suppress(OSError):
            newest = max(each.stat().st_mtime for each in (path, *_beside(path)) if each.exists())
            if not path.name.startswith(own) and time.time() - newest > MAXIMUM_AGE_SECONDS:
                for name in (path, *_beside(path)):
                    name.unlink(missing_ok=True)


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal")]


def _pack(woven: Sequence[Any]) -> bytes:
    return zlib.compress(json.dumps(woven).encode(), _LEVEL)


def _unpack(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))
