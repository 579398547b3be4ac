"""The statements of a group of writes in PostgreSQL: the rows that it locks and reads, and what it leaves.

Each takes whole lists, so that a group costs as many round trips as one write. Rows are locked in the order of the
tasks' ids, so that groups of several processes never wait for each other in a circle.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from isthmus.events import TaskState
from isthmus.journal.sql.rows import DELETED, counted_as
from isthmus.journal.sql.write_facts import CHANGING, KEPT, NEW, Facts, Needs, TaskEntry, Waiting
from isthmus.journal.sql.write_group import WriteGroup

if TYPE_CHECKING:
    from isthmus.journal.postgres.driver import Connection

CHANNEL = "isthmus"
"""Name of the channel of notices between processes."""
_UNENDED = [state.value for state in TaskState if not state.is_terminal]
_LOCKED = (
    f"SELECT key, {', '.join((*KEPT, *CHANGING))}, inbox, size, id = ANY($2::text[])"
    ' AND EXISTS (SELECT 1 FROM tasks AS other WHERE other.tag > 0 AND other."user" = tasks."user"'
    " AND other.running_limit IS NOT NULL)"
    " FROM tasks WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE"
)
_INBOXES = (
    "SELECT tasks.id, inbox.number, inbox.body FROM inbox JOIN tasks ON tasks.key = inbox.task"
    " WHERE tasks.id = ANY($1::text[]) ORDER BY inbox.number"
)
_BEGUN = (
    'SELECT tasks."user", tasks.message, tasks.id, tasks.digest FROM unnest($1::text[], $2::text[]) AS m(name, message)'
    " JOIN tasks ON tasks.message = m.message AND tasks.\"user\" = m.name WHERE tasks.message <> ''"
    f" AND tasks.state NOT IN ('{DELETED}', '{TaskState.CANCELED}') AND NOT EXISTS"
    " (SELECT 1 FROM events WHERE events.task = tasks.key AND events.seq > 1 AND events.type = 'Prompt')"
    " ORDER BY tasks.key DESC"
)
_COUNTS = (
    'SELECT "user", state, sign(tag)::int, count(*) FROM tasks WHERE "user" = ANY($1::text[])'
    " AND state = ANY($2::text[]) AND parent = '' GROUP BY 1, 2, 3"
)
_TAGS = (
    'SELECT u, (SELECT started FROM queue), (SELECT coalesce(max(tag), 0) FROM tasks WHERE tag > 0 AND "user" = u)'
    " FROM unnest($1::text[]) AS u"
)
_STORED = ("key", *CHANGING, "inbox", "size")
"""Columns that a write may change, and the key by which their rows are found."""
_ADDED = (*KEPT, *CHANGING, *NEW, "size")
"""Columns of a new row."""
_TYPES = {
    **dict.fromkeys(("key", "seq", "epoch", "tag", "size"), "bigint"),
    **dict.fromkeys(("inbox", "running_limit"), "integer"),
    **dict.fromkeys(("lease_until", "updated", "created"), "float8"),
}
"""Types of the columns that are not texts."""
_SHOWN = frozenset(("title", "error", "reason"))
"""Texts for people, which are stored as far as they can be; of ids nothing is replaced, since others look for them."""
_ATTRIBUTES = {"id": "task_id", '"user"': "user", **NEW}
"""Attributes of a :class:`TaskEntry` from which columns are stored that are called otherwise."""


def lock_number(*words: str) -> int:
    """Return the number of the advisory lock for these words."""
    digest = hashlib.blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def storable(text: str | None) -> str | None:
    """Return a text as PostgreSQL can store it: without NUL characters and halves of surrogate pairs."""
    if text is None or (text.isprintable() and text.isascii()):
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


async def lock_user_counts(
    connection: "Connection", users: Iterable[str], messages: Iterable[tuple[str, str]] = ()
) -> None:
    """Keep other transactions from counting these users' tasks, and from beginning tasks with these messages.

    It comes before rows are locked, and takes its locks in their order, so that nobody waits in a circle.
    """
    numbers = [lock_number("message", *pair) for pair in messages]
    numbers += [lock_number("user", user) for user in users]
    if numbers:
        await connection.execute("SELECT pg_advisory_xact_lock(k) FROM unnest($1::bigint[]) AS k", sorted(numbers))


async def read_facts(connection: "Connection", needs: Needs) -> Facts:
    """Return what a group depends on, and lock the rows of its tasks until the end of the transaction."""
    facts = Facts()
    await lock_user_counts(connection, needs.limited, needs.messages)
    if needs.tasks:
        for values in await connection.fetch(_LOCKED, [*needs.tasks], [*needs.inboxes]):
            entry = TaskEntry(*values)
            facts.entries[entry.task_id] = entry
    if filled := [task_id for task_id in needs.inboxes if (e := facts.entries.get(task_id)) is not None and e.inbox]:
        for task_id, number, body in await connection.fetch(_INBOXES, filled):
            facts.inboxes.setdefault(task_id, []).append(Waiting(number, body))
    if needs.messages:
        users, messages = ([pair[index] for pair in needs.messages] for index in (0, 1))
        for user, message, task_id, digest in await connection.fetch(_BEGUN, users, messages):
            facts.begun.setdefault((user, message), []).append((task_id, digest))
    if needs.limited:
        facts.counts = {user: Counter() for user in needs.limited}
        for user, state, tag, count in await connection.fetch(_COUNTS, [*needs.limited], _UNENDED):
            facts.counts[user][counted_as(state, tag)] += count
    if needs.queueing:
        for user, started, newest in await connection.fetch(_TAGS, [*needs.queueing]):
            facts.started, facts.tags[user] = started, newest
    return facts


async def store(connection: "Connection", group: WriteGroup, notice: str | None = None) -> None:
    """Store what a group has left, in one statement, which sends the notice to other processes, too."""
    new = [entry for entry in group.entries.values() if entry.key is None]
    changed = [entry for entry in group.entries.values() if entry.key is not None and entry.is_changed]
    values: list[Any] = []
    if new:
        values += _columns(new, _ADDED)
    if changed:
        values += _columns(changed, _STORED)
    if group.events:
        values += _lists(
            (entry.key, entry.task_id, item.seq, item.at, type(item.event).__name__, body)
            for entry, item, body in group.events
        )
    if group.messages:
        values += _lists((entry.key, entry.task_id, message, seq) for entry, message, seq in group.messages)
    if group.taken:
        values.append(group.taken)
    parts = (bool(new), bool(changed), bool(group.events), bool(group.messages), bool(group.taken))
    if any(parts):
        given = () if notice is None else (notice,)
        await connection.execute(_statement(*parts, is_said=notice is not None), *values, *given)


def _lists(rows: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    """Return the values of rows, a list for each column."""
    return [[*values] for values in zip(*rows, strict=True)]


def _columns(entries: Sequence[TaskEntry], names: Iterable[str]) -> list[list[Any]]:
    """Return the values of these columns, a list for each column."""
    found: list[list[Any]] = []
    for name in names:
        values = map(attrgetter(_ATTRIBUTES.get(name, name)), entries)
        found.append([*map(storable, values)] if name in _SHOWN else [*values])
    return found


@cache
def _statement(new: bool, changed: bool, events: bool, messages: bool, taken: bool, *, is_said: bool) -> str:
    """Return the statement that stores these parts of a group."""
    count = 0

    def lists(*types: str) -> str:
        nonlocal count
        count += len(types)
        marks = (f"${number}::{kind}[]" for number, kind in enumerate(types, count - len(types) + 1))
        return f"unnest({', '.join(marks)})"

    parts: list[str] = []
    if new:
        names = ", ".join(_ADDED)
        given = lists(*(_TYPES.get(name, "text") for name in _ADDED))
        parts.append(f"n AS (INSERT INTO tasks ({names}) SELECT * FROM {given} RETURNING id, key)")
    if changed:
        names = ", ".join(_STORED)
        sets = ", ".join(f"{name} = c.{name}" for name in _STORED[1:])
        given = lists(*(_TYPES.get(name, "text") for name in _STORED))
        parts.append(f"u AS (UPDATE tasks AS t SET {sets} FROM {given} AS c({names}) WHERE t.key = c.key)")
    key, join = ("coalesce(v.key, n.key)", " LEFT JOIN n ON n.id = v.id") if new else ("v.key", "")
    if events:
        given = lists("bigint", "text", "bigint", "float8", "text", "text")
        parts.append(
            f"e AS (INSERT INTO events (task, seq, at, type, body) SELECT {key}, v.seq, v.at, v.type, v.body"
            f" FROM {given} AS v(key, id, seq, at, type, body){join})"
        )
    if messages:
        given = lists("bigint", "text", "text", "bigint")
        parts.append(
            f"m AS (INSERT INTO messages (task, message, seq) SELECT {key}, v.message, v.seq"
            f" FROM {given} AS v(key, id, message, seq){join})"
        )
    if taken:
        parts.append(f"d AS (DELETE FROM inbox WHERE number IN (SELECT * FROM {lists('bigint')}))")
    result = f"pg_notify('{CHANNEL}', ${count + 1})" if is_said else "1"
    return f"WITH {', '.join(parts)} SELECT {result}"
