"""The saved chats in the embedded journal. `isthmus.saved_chats` documents each method."""

import json
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from typing_extensions import override

from isthmus.client import LimitReached
from isthmus.encoding.codec import JsonObject
from isthmus.journal.rows import JSON
from isthmus.journal.sql_reads import RowReader
from isthmus.journal.writer import GroupWriter
from isthmus.saved_chats import MAXIMUM_CHARACTERS, MAXIMUM_CHATS, ChatPlace, ChatStore, SavedChat

_COLUMNS = "name, title, count, task, saved"
_KEY = "user = ? AND workspace = ? AND name = ?"


class SqliteChats(ChatStore):
    """A :class:`~isthmus.saved_chats.ChatStore` on the threads of an SqliteJournal."""

    def __init__(self, writer: GroupWriter, read: RowReader, clock: Callable[[], float]) -> None:
        self._writer = writer
        self._read = read
        self._clock = clock

    @override
    def save(self, place: ChatPlace, chat: SavedChat, messages: Sequence[JsonObject]) -> "Awaitable[SavedChat | None]":
        body = JSON(list(messages))
        now = self._clock()

        def work(connection: sqlite3.Connection) -> SavedChat | None:
            key = (place.user, place.workspace, chat.name)
            found = connection.execute(f"SELECT {_COLUMNS} FROM chats WHERE {_KEY}", key).fetchone()
            if found is not None:
                known = _chat(found)
                return None if known.task_id == chat.task_id else known
            (number, size) = connection.execute(
                "SELECT count(*), coalesce(sum(length(body)), 0) FROM chats WHERE user = ?", (place.user,)
            ).fetchone()
            if number >= MAXIMUM_CHATS:
                raise LimitReached(f"you have {number} saved chats, which is the maximum; delete one of them first")
            if size + len(body) > MAXIMUM_CHARACTERS:
                raise LimitReached(
                    f"the chat has {len(body):,} characters, and your other saved chats have {size:,}; the maximum is"
                    f" {MAXIMUM_CHARACTERS:,} together. Delete some of them, or run /compress before you save"
                )
            connection.execute(
                f"INSERT INTO chats (user, workspace, {_COLUMNS}, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*key, chat.title, len(messages), chat.task_id, now, body),
            )
            return None

        return self._writer.submit(work)

    @override
    def delete(self, place: ChatPlace, name: str) -> Awaitable[bool]:
        def work(connection: sqlite3.Connection) -> bool:
            key = (place.user, place.workspace, name)
            return connection.execute(f"DELETE FROM chats WHERE {_KEY}", key).rowcount == 1

        return self._writer.submit(work)

    @override
    async def chats(self, place: ChatPlace) -> Sequence[SavedChat]:
        query = f"SELECT {_COLUMNS} FROM chats WHERE user = ? AND workspace = ? ORDER BY saved DESC, name"
        return await self._read(query, (place.user, place.workspace), _chat)

    @override
    async def messages(self, place: ChatPlace, name: str) -> tuple[JsonObject, ...] | None:
        query = f"SELECT body FROM chats WHERE {_KEY}"
        key = (place.user, place.workspace, name)
        found = await self._read(query, key, lambda values: tuple(json.loads(values[0])))
        return found[0] if found else None


def _chat(values: Sequence[Any]) -> SavedChat:
    return SavedChat(*values)
