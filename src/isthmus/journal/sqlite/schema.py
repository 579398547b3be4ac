"""Opening the journal's SQLite file: its identity, its version, and clear errors that leave the file alone."""

import contextlib
import errno
import json
import logging
import os
import sqlite3
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from isthmus.encoding.json_shapes import as_object
from isthmus.files.databases import roll_back
from isthmus.journal.port.base import JournalError

log = logging.getLogger(__name__)

APPLICATION_ID = 0x49535448  # "ISTH"
VERSION = 12
INCOMPLETE = 2**31 - 1
"""Version of a file while another journal is copied into it: every program takes it for a newer one's."""
BUSY_SECONDS = 5.0
"""Time in seconds to wait for another program to unlock the file."""
LOG_BYTES = 16 * 1024 * 1024
"""Maximum size in bytes of the log beside the file after its content was written into the file."""

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
    pending TEXT NOT NULL DEFAULT '[]',
    user TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    digest TEXT NOT NULL DEFAULT '',
    parent TEXT NOT NULL DEFAULT ''
);
CREATE INDEX tasks_by_user ON tasks (user, state);
CREATE INDEX tasks_by_context ON tasks (context, key);
CREATE INDEX tasks_by_state ON tasks (state);
CREATE INDEX tasks_by_change ON tasks (updated);
CREATE INDEX tasks_by_message ON tasks (message, user) WHERE message <> '';
CREATE INDEX tasks_by_parent ON tasks (parent) WHERE parent <> '';
CREATE TABLE events (
    task INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (task, seq)
) WITHOUT ROWID;
CREATE INDEX artifact_events ON events (task, seq) WHERE type = 'ArtifactUpdate';
CREATE TABLE inbox (
    number INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    body TEXT NOT NULL
);
"""
_PUSHES = """
CREATE TABLE pushes (
    task INTEGER NOT NULL,
    id TEXT NOT NULL,
    target TEXT NOT NULL,
    wire TEXT NOT NULL,
    uri TEXT,
    seq INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'active',
    attempts INTEGER NOT NULL DEFAULT 0,
    next_attempt REAL NOT NULL DEFAULT 0,
    owner TEXT,
    error TEXT,
    created REAL NOT NULL,
    PRIMARY KEY (task, id)
) WITHOUT ROWID;
CREATE INDEX pushes_by_state ON pushes (state, next_attempt);
"""
_MESSAGES = """
CREATE TABLE messages (
    task INTEGER NOT NULL,
    message TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (task, message, seq)
) WITHOUT ROWID;
"""
"""Table of the events that a client's message caused, by the message's id."""
_CHATS = """
CREATE TABLE chats (
    user TEXT NOT NULL,
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    count INTEGER NOT NULL,
    task TEXT NOT NULL,
    saved REAL NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (user, workspace, name)
);
"""
"""Table of the saved chats; ``task`` is the task that saved one, ``body`` its messages as a JSON list."""
_INBOX_TYPES = """
ALTER TABLE inbox ADD COLUMN type TEXT AS (substr(body, 10, instr(substr(body, 10, 100), '"') - 1));
CREATE INDEX inbox_by_type ON inbox (task, type);
"""
"""Type of each waiting event, and an index by it.

It is computed from the body, which begins with ``{"type":"``, so that rows of older versions have it, too.
"""
_QUEUE = """
ALTER TABLE tasks ADD COLUMN label TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN tag INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN reserved TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_in_queue ON tasks (tag, key) WHERE tag > 0;
CREATE INDEX tasks_in_queue_by_user ON tasks (user, tag) WHERE tag > 0;
CREATE TABLE queue (started INTEGER NOT NULL);
INSERT INTO queue VALUES (0);
"""
"""Start tags of waiting tasks (0: it does not wait), owners for which they wait, and the tag that started last."""
_REMOVED_TOKENS = """
CREATE TABLE removed_tokens (
    user TEXT NOT NULL,
    task TEXT NOT NULL,
    begun INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (user, task, begun)
) WITHOUT ROWID;
"""
"""Table of the model tokens of removed tasks, see `isthmus.journal.port.removed_tokens`."""
_RUNNING_LIMITS = """
ALTER TABLE tasks ADD COLUMN running_limit INTEGER;
CREATE INDEX tasks_at_work ON tasks (user) WHERE state IN ('submitted', 'working') AND tag = 0 AND parent = '';
"""
"""Number of a user's tasks at work below which a waiting one may start, and an index of the tasks at work."""
_REMOVED_COSTS = "ALTER TABLE removed_tokens ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;"
"""Cost of each removed task in picodollars."""
_SESSIONS = """
CREATE TABLE sessions (
    user TEXT NOT NULL,
    context TEXT NOT NULL,
    name TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL DEFAULT '',
    archived REAL,
    changed REAL NOT NULL,
    PRIMARY KEY (user, context)
) WITHOUT ROWID;
CREATE INDEX sessions_by_change ON sessions (user, changed);
"""
"""Table of the sessions that have a name, are in the archive, or lost their first task."""
_UPGRADES = {
    1: """
ALTER TABLE tasks ADD COLUMN user TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_by_user ON tasks (user, state);
CREATE INDEX artifact_events ON events (task, seq) WHERE type = 'ArtifactUpdate';
"""
    + _PUSHES,
    2: """
ALTER TABLE tasks ADD COLUMN message TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN digest TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_by_message ON tasks (message, user) WHERE message <> '';
""",
    3: _MESSAGES,
    4: _INBOX_TYPES,
    5: """
ALTER TABLE tasks ADD COLUMN parent TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_by_parent ON tasks (parent) WHERE parent <> '';
""",
    6: _CHATS,
    7: _QUEUE,
    8: _REMOVED_TOKENS,
    9: _RUNNING_LIMITS,
    10: _REMOVED_COSTS,
    11: _SESSIONS,
}
"""Statements that upgrade the tables of each older version to the next; rows stay."""
_NEWEST = (
    *(_TABLES, _PUSHES, _MESSAGES, _INBOX_TYPES, _CHATS, _QUEUE, _REMOVED_TOKENS, _RUNNING_LIMITS, _REMOVED_COSTS),
    _SESSIONS,
)
"""Statements that make the tables of this version."""


def open_writer(path: Path, agent: Sequence[str] = (), busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Return the connection that writes, in WAL mode; create the file when it does not exist.

    ``agent`` is the name of the agent that runs its tasks, then its former names.

    Raises:
        JournalError: the file cannot be opened, is locked, is not a journal, has a newer version, or belongs to another
            agent.
    """
    try:
        _create_private(path)
        connection = _connect(path, busy_seconds)
        try:
            _check(connection, path)
            _close_to_others(path)
            if agent:
                _hold_for(connection, path, agent)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise JournalError(explain(path, error, busy_seconds)) from error
    return connection


def _hold_for(connection: sqlite3.Connection, path: Path, names: Sequence[str]) -> None:
    """Record that a journal belongs to the agent ``names[0]``, unless it belongs to another agent."""
    if holder(connection) == names[0]:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("CREATE TABLE IF NOT EXISTS agent (name TEXT NOT NULL)")
        if (found := holder(connection)) is not None and found not in names:
            raise JournalError(
                f"{path} is the journal of the agent {found!r}, and this one is {names[0]!r}: it would continue the"
                " other one's tasks. Give each agent a folder of its own; a renamed agent must list its former"
                " names."
            )
        connection.execute("DELETE FROM agent")
        connection.execute("INSERT INTO agent VALUES (?)", (names[0],))
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def holder(connection: sqlite3.Connection) -> str | None:
    """Return the name of the agent to which a journal belongs."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'agent'").fetchone() is None:
        return None
    found = connection.execute("SELECT name FROM agent").fetchone()
    return None if found is None else str(found[0])


def open_reader(path: Path) -> sqlite3.Connection:
    """Return a connection that only reads."""
    connection = _connect(path)
    connection.execute("PRAGMA query_only=ON")
    return connection


def same_file(path: Path) -> Callable[[], None]:
    """Return a check that the opened file is still the one at ``path``.

    It raises a JournalError if not: writes would be lost with the last process that has the old file open.
    """
    opened = path.stat()

    def check() -> None:
        try:
            found = os.stat(path)  # noqa: PTH116 - called at each commit; pathlib is slow
        except OSError:
            found = None
        if found is None or (found.st_ino, found.st_dev) != (opened.st_ino, opened.st_dev):
            raise JournalError(
                f"{path} was {'deleted' if found is None else 'replaced'} while it was open: nothing more is stored."
                " Restart Isthmus; what the old file held is lost unless you have a copy of it."
            )

    return check


def empty_log(path: Path) -> bool:
    """Write the log beside the file into it and empty the log; False when another connection is reading the log."""
    connection = _connect(path)
    try:
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return busy == 0
    finally:
        connection.close()


def _connect(path: Path, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)


def _create_private(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _close_to_others(path: Path) -> None:
    """Deny other users access to the journal: it holds conversations and credentials."""
    if os.name != "posix":
        return
    for file in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))):
        with contextlib.suppress(FileNotFoundError):
            mode = stat.S_IMODE(file.stat().st_mode)
            if mode & 0o077:
                file.chmod(0o600)
                log.warning("%s could be opened by other users (mode %04o); only you can open it now", file, mode)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not (application == APPLICATION_ID or (application == 0 and version == 0 and objects == 0)):
        raise JournalError(
            f"{path} is an SQLite file of another program; expected an Isthmus journal. "
            "Move it away or name another folder with --data-dir."
        )
    if version == INCOMPLETE:
        raise incomplete(path)
    if version > VERSION:
        raise JournalError(
            f"{path} was written by a newer Isthmus (journal version {version}, this one knows {VERSION}). "
            "Upgrade Isthmus, or name another folder with --data-dir."
        )
    if version == 0:
        # Return pages that deletions empty to the file system in small steps. Works only before the first table.
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    # Shrink the log beside the file after a burst of writes.
    connection.execute(f"PRAGMA journal_size_limit={LOG_BYTES}")
    # Overwrite deleted data with zeros.
    connection.execute("PRAGMA secure_delete=ON")
    if version < VERSION:
        _upgrade(connection)
    if 0 < version < VERSION:
        # Once, so that free pages of an old file can be returned in small steps. If it fails, they are reused.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("VACUUM")


def incomplete(path: Path) -> JournalError:
    """Return the error for a file into which a journal was not copied to the end."""
    return JournalError(
        f"{path} is the beginning of a copy that was interrupted. Copy the journal again: isthmus journal copy"
    )


def _upgrade(connection: sqlite3.Connection) -> None:
    """Create the tables, or upgrade those of an older version to this one, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have upgraded it before the lock was taken.
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            _run(connection, "".join(_NEWEST))
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        else:
            for older in range(version, VERSION):
                _run(connection, _UPGRADES[older])
                if older == 3:
                    _note_messages(connection)
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def _note_messages(connection: sqlite3.Connection) -> None:
    """Fill the table of messages from the existing events."""
    rows = connection.execute("SELECT task, seq, body FROM events WHERE type IN ('Prompt', 'ConfirmationAccepted')")
    for task, seq, body in rows:
        message_id = as_object(json.loads(body)).get("message_id")
        if isinstance(message_id, str) and message_id:
            connection.execute("INSERT INTO messages (task, message, seq) VALUES (?, ?, ?)", (task, message_id, seq))


def _run(connection: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";"):
        connection.execute(statement)


def explain(path: Path, error: Exception, busy_seconds: float = BUSY_SECONDS) -> str:
    """Return why a journal's file cannot be opened or read, and what to do."""
    text = str(error)
    if "not a database" in text or "malformed" in text:
        return f"{path} is not a readable journal ({text}). It was left as it is; move it away to start a new one."
    if "is full" in text or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
        return f"{path} cannot be opened: its disk, or your quota, is full. Free some space, or use another --data-dir."
    if "disk I/O error" in text:
        return f"{path} cannot be opened: the disk has an error, or the size of files is limited too much (ulimit -f)."
    if "locked" in text or "busy" in text:
        return f"{path} is locked by another program ({busy_seconds:g} s waited). Close it, or use another --data-dir."
    return f"{path} cannot be opened ({text}). Check that the folder exists and is yours, or use another --data-dir."
