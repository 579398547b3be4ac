"""The journal's tables in PostgreSQL, and their numbered upgrades: each in one transaction, one process at a time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isthmus.journal.port.base import JournalError

if TYPE_CHECKING:
    from isthmus.journal.postgres.driver import Connection

VERSION = 7
UPGRADE_LOCK = 0x49535448
"""Number of the advisory lock that a process holds while it upgrades: "ISTH"."""

_TABLES = """
CREATE TABLE journal (version integer NOT NULL, agent text);
INSERT INTO journal (version) VALUES (0);
CREATE TABLE tasks (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    context text COLLATE "C" NOT NULL,
    workspace text COLLATE "C" NOT NULL,
    title text NOT NULL,
    state text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    owner text COLLATE "C",
    epoch bigint NOT NULL,
    lease_until double precision NOT NULL,
    created double precision NOT NULL,
    updated double precision NOT NULL,
    error text,
    reason text,
    pending text NOT NULL DEFAULT '[]',
    "user" text COLLATE "C" NOT NULL DEFAULT '',
    message text COLLATE "C" NOT NULL DEFAULT '',
    digest text NOT NULL DEFAULT '',
    parent text COLLATE "C" NOT NULL DEFAULT '',
    inbox integer NOT NULL DEFAULT 0,
    size bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 80);
CREATE INDEX tasks_by_user ON tasks ("user", state);
CREATE INDEX tasks_by_context ON tasks (context, key);
CREATE INDEX tasks_at_work ON tasks (state, lease_until) WHERE state IN ('submitted', 'working');
CREATE INDEX tasks_by_change ON tasks (updated);
CREATE INDEX tasks_by_message ON tasks (message, "user") WHERE message <> '';
CREATE INDEX tasks_by_parent ON tasks (parent) WHERE parent <> '';
CREATE TABLE events (
    task bigint NOT NULL,
    seq bigint NOT NULL,
    at double precision NOT NULL,
    type text COLLATE "C" NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (task, seq)
);
CREATE INDEX artifact_events ON events (task, seq) WHERE type = 'ArtifactUpdate';
CREATE TABLE messages (
    task bigint NOT NULL,
    message text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (task, message, seq)
);
CREATE TABLE inbox (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    body text NOT NULL
);
CREATE INDEX inbox_by_type ON inbox (task, type);
CREATE TABLE pushes (
    task bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    target text NOT NULL,
    wire text NOT NULL,
    uri text,
    seq bigint NOT NULL,
    state text COLLATE "C" NOT NULL DEFAULT 'active',
    attempts integer NOT NULL DEFAULT 0,
    next_attempt double precision NOT NULL DEFAULT 0,
    owner text COLLATE "C",
    error text,
    created double precision NOT NULL,
    PRIMARY KEY (task, id)
);
CREATE INDEX pushes_by_state ON pushes (state, next_attempt);
CREATE TABLE chats (
    "user" text COLLATE "C" NOT NULL,
    workspace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    title text NOT NULL,
    count integer NOT NULL,
    task text NOT NULL,
    saved double precision NOT NULL,
    body text NOT NULL,
    PRIMARY KEY ("user", workspace, name)
);
"""
_QUEUE = """
ALTER TABLE tasks ADD COLUMN label text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN tag bigint NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN reserved text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX tasks_in_queue ON tasks (tag, key) WHERE tag > 0;
CREATE INDEX tasks_in_queue_by_user ON tasks ("user", tag) WHERE tag > 0;
DROP INDEX tasks_at_work;
CREATE INDEX tasks_with_leases ON tasks (lease_until) WHERE state IN ('submitted', 'working') AND tag = 0;
CREATE TABLE queue (started bigint NOT NULL);
INSERT INTO queue VALUES (0);
CREATE TABLE replicas (
    owner text COLLATE "C" PRIMARY KEY,
    lock bigint,
    labels text NOT NULL,
    slots integer,
    begun double precision NOT NULL
);
CREATE UNLOGGED TABLE progress (
    task text COLLATE "C" NOT NULL,
    call text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (task, call)
);
"""
"""Start tags of waiting tasks (0: it does not wait), the tag of the task that started last, and the processes."""
_FILES = """
CREATE TABLE files (
    task text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    folders text[] NOT NULL,
    kept timestamptz NOT NULL DEFAULT now(),
    data bytea NOT NULL,
    PRIMARY KEY (task, name)
);
"""
"""Files of tasks by the id of the task, which may be recorded after them."""
_REMOVED_TOKENS = """
CREATE TABLE removed_tokens (
    "user" text COLLATE "C" NOT NULL,
    task text COLLATE "C" NOT NULL,
    begun bigint NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY ("user", task, begun)
);
"""
"""Model tokens of removed tasks, see `isthmus.journal.port.removed_tokens`."""
_RUNNING_LIMITS = "ALTER TABLE tasks ADD COLUMN running_limit integer;"
"""Number of a user's tasks at work below which a waiting one may start; null for any."""
_REMOVED_COSTS = "ALTER TABLE removed_tokens ADD COLUMN cost bigint NOT NULL DEFAULT 0;"
"""Cost of each removed task in picodollars."""
_SESSIONS = """
CREATE TABLE sessions (
    "user" text COLLATE "C" NOT NULL,
    context text COLLATE "C" NOT NULL,
    name text NOT NULL DEFAULT '',
    title text NOT NULL DEFAULT '',
    archived double precision,
    changed double precision NOT NULL,
    PRIMARY KEY ("user", context)
);
CREATE INDEX sessions_by_change ON sessions ("user", changed);
"""
"""Sessions that have a name, are in the archive, or lost their first task."""
_UPGRADES = {
    0: _TABLES,
    1: _QUEUE,
    2: _FILES,
    3: _REMOVED_TOKENS,
    4: _RUNNING_LIMITS,
    5: _REMOVED_COSTS,
    6: _SESSIONS,
}
"""Statements that upgrade the tables of each older version to the next; 0 is an empty database."""


async def prepare(connection: "Connection", where: str, agent: Sequence[str] = ()) -> None:
    """Make or upgrade the tables, and check that they are a journal of this agent. ``where`` names the database.

    ``agent`` is the name of the agent that runs its tasks, then its former names.

    Raises:
        JournalError: the database is another program's, newer than this program, or another agent's; it is unchanged.
    """
    if await version_of(connection, where) != VERSION or agent:
        async with connection.transaction():
            await prepare_within(connection, where, agent)


async def prepare_within(connection: "Connection", where: str, agent: Sequence[str] = ()) -> None:
    """Do what :func:`prepare` does, in the transaction that the connection is in."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", UPGRADE_LOCK)
    # Another process may have upgraded it before the lock was taken.
    version = await version_of(connection, where)
    if version > VERSION:
        raise JournalError(
            f"{where} was written by a newer Isthmus (journal version {version}, this one knows {VERSION})."
            " Upgrade Isthmus, or name another database."
        )
    for older in range(version, VERSION):
        await connection.execute(_UPGRADES[older])
    if version < VERSION:
        await connection.execute("UPDATE journal SET version = $1", VERSION)
    if agent:
        await _hold_for(connection, where, agent)


async def version_of(connection: "Connection", where: str) -> int:
    """Return the version of the tables; 0 if there are none.

    Raises:
        JournalError: there are tables of another program.
    """
    # By a query of the catalogue, which sees the tables that another process has just made; to_regclass may not.
    found = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relname IN ('journal', 'tasks') AND relkind IN ('r', 'p')"
        " AND pg_table_is_visible(oid)"
    )
    names = {row[0] for row in found}
    if "journal" in names:
        return int(await connection.fetchval("SELECT version FROM journal"))
    if "tasks" in names:
        raise JournalError(
            f"{where} has a table tasks of another program; expected an Isthmus journal or an empty database."
            " Name another database."
        )
    return 0


async def _hold_for(connection: "Connection", where: str, names: Sequence[str]) -> None:
    """Record that a journal belongs to the agent ``names[0]``, unless it belongs to another agent."""
    found: str | None = await connection.fetchval("SELECT agent FROM journal")
    if found is not None and found not in names:
        raise JournalError(
            f"{where} is the journal of the agent {found!r}, and this one is {names[0]!r}: it would continue the other"
            " one's tasks. Give each agent a database of its own; a renamed agent must list its former names."
        )
    if found != names[0]:
        await connection.execute("UPDATE journal SET agent = $1", names[0])
