"""Opening the journal's SQLite file: its identity, its version, and clear errors that leave the file alone."""

import os
import sqlite3
from pathlib import Path

from isthmus.journal.base import JournalError

APPLICATION_ID = 0x49535448  # "ISTH"
VERSION = 1
BUSY_SECONDS = 5.0

_TABLES = """
CREATE TABLE tasks (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    context TEXT NOT NULL,
    workspace TEXT NOT NULL,
    title TEXT NOT NULL,
    state TEXT NOT NULL,
    seq INTEGER NOT NULL,
    owner TEXT,
    epoch INTEGER NOT NULL,
    lease_until REAL NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    error TEXT,
    reason TEXT,
    pending TEXT NOT NULL DEFAULT '[]'
);
CREATE INDEX tasks_by_context ON tasks (context, key);
CREATE INDEX tasks_by_state ON tasks (state);
CREATE INDEX tasks_by_change ON tasks (updated);
CREATE TABLE events (
    task INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (task, seq)
) WITHOUT ROWID;
CREATE TABLE inbox (
    number INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    body TEXT NOT NULL
);
"""


def open_writer(path: Path) -> sqlite3.Connection:
    """The connection that writes, in WAL mode, made with a new file when there is none.

    Raises:
        JournalError: the file cannot be opened, is locked, is no journal, or is of a newer version.
    """
    try:
        _create_private(path)
        connection = _connect(path)
        try:
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise JournalError(_explain(path, error)) from error
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that only reads."""
    connection = _connect(path)
    connection.execute("PRAGMA query_only=ON")
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _create_private(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not (application == APPLICATION_ID or (application == 0 and version == 0 and objects == 0)):
        raise JournalError(
            f"{path} is an SQLite file of another program; expected an Isthmus journal. "
            "Move it away or name another folder with --data-dir."
        )
    if version > VERSION:
        raise JournalError(
            f"{path} was written by a newer Isthmus (journal version {version}, this one knows {VERSION}). "
            "Upgrade Isthmus, or name another folder with --data-dir."
        )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    if version == 0:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have made the tables between the look above and the lock.
        if connection.execute("PRAGMA user_version").fetchone() == (0,):
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")


def _explain(path: Path, error: Exception) -> str:
    text = str(error)
    if "not a database" in text or "malformed" in text:
        return f"{path} is not a readable journal ({text}). It was left as it is; move it away to start a new one."
    if "locked" in text or "busy" in text:
        return f"{path} is locked by another program ({BUSY_SECONDS:g} s waited). Close it, or use another --data-dir."
    return f"{path} cannot be opened ({text}). Check that the folder exists and is yours, or use another --data-dir."
