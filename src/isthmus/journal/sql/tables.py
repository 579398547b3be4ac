"""Tables of a journal that hold what it stores, with their columns, for programs that read or copy them whole.

Left out are tables about the processes that work with it (``replicas``, ``progress``), and those of one row
(``journal``, ``agent``, ``queue``). Leases and the owners of pushes are not among the columns either.
"""

from collections.abc import Sequence
from typing import Any

from isthmus.record import record


@record
class StoredTable:
    """A table: its columns, the columns by which its rows are ordered and told apart, and the one that may be long.

    ``made`` are the columns that SQLite computes or does not have: they are read by these expressions there, and not
    written.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    long: str = ""
    made: tuple[tuple[str, str], ...] = ()

    def index(self, column: str) -> int:
        """Return the place of a column in a row."""
        return self.columns.index(column)

    def key_of(self, row: Sequence[Any]) -> list[Any]:
        """Return the values of the key in a row."""
        return [row[self.columns.index(column)] for column in self.key]


TASKS = StoredTable(
    "tasks",
    (
        *("key", "id", "context", "workspace", "title", "state", "seq", "epoch", "created", "updated", "error"),
        *("reason", "pending", "user", "message", "digest", "parent", "label", "tag", "reserved", "running_limit"),
        *("inbox", "size"),
    ),
    ("key",),
    "pending",
    (
        ("inbox", "(SELECT count(*) FROM inbox WHERE inbox.task = tasks.key)"),
        (
            "size",
            "CASE state WHEN 'deleted' THEN 0 ELSE"
            " (SELECT ifnull(sum(length(body) + 100), 0) FROM events WHERE events.task = tasks.key) END",
        ),
    ),
)
EVENTS = StoredTable("events", ("task", "seq", "at", "type", "body"), ("task", "seq"), "body")
MESSAGES = StoredTable("messages", ("task", "message", "seq"), ("task", "message", "seq"))
INBOX = StoredTable("inbox", ("number", "task", "type", "body"), ("task", "number"), "body", (("type", "type"),))
PUSHES = StoredTable(
    "pushes",
    ("task", "id", "target", "wire", "uri", "seq", "state", "attempts", "next_attempt", "error", "created"),
    ("task", "id"),
    "target",
)
CHATS = StoredTable(
    "chats",
    ("user", "workspace", "name", "title", "count", "task", "saved", "body"),
    ("user", "workspace", "name"),
    "body",
)
SESSIONS = StoredTable(
    "sessions", ("user", "context", "name", "title", "archived", "changed"), ("user", "context"), "name"
)
TABLES = (TASKS, EVENTS, MESSAGES, INBOX, PUSHES, CHATS, SESSIONS)
"""All of them, in the order in which they are copied."""


def quoted(columns: Sequence[str]) -> str:
    """Return the names of columns as both databases read them."""
    return ", ".join(f'"{column}"' for column in columns)
