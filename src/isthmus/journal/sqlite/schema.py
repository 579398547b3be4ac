"""The tables of the journal's SQLite file, its version, and the upgrades from older versions."""

import json
import sqlite3

from isthmus.encoding.json_shapes import as_object
from isthmus.files.databases import roll_back

APPLICATION_ID = 0x49535448  # "ISTH"
VERSION = 12
INCOMPLETE = 2**31 - 1
"""Version of a file while another journal is copied into it: every program takes it for a newer one's."""

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
    draft TEXT NOT NULL DEFAULT '',
    changed REAL NOT NULL,
    PRIMARY KEY (user, context)
) WITHOUT ROWID;
CREATE INDEX sessions_by_change ON sessions (user, changed);
CREATE TABLE queued (
    user TEXT NOT NULL,
    context TEXT NOT NULL,
    id TEXT NOT NULL,
    place INTEGER NOT NULL,
    body TEXT NOT NULL,
    problem TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (user, context, id)
);
"""
"""Tables of the sessions of which there is more to keep than their tasks, and of messages that wait in sessions."""
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


def upgrade(connection: sqlite3.Connection) -> None:
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
