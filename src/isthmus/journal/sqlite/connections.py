"""Connections to the journal's SQLite file: checks of what it is, and clear errors that leave the file alone."""

import contextlib
import errno
import logging
import os
import sqlite3
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from isthmus.files.databases import roll_back
from isthmus.journal.port.base import JournalError
from isthmus.journal.sqlite.schema import APPLICATION_ID, INCOMPLETE, VERSION, upgrade

log = logging.getLogger(__name__)

BUSY_SECONDS = 5.0
"""Time in seconds to wait for another program to unlock the file."""
LOG_BYTES = 16 * 1024 * 1024
"""Maximum size in bytes of the log beside the file after its content was written into the file."""


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
        upgrade(connection)
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
