"""The saved chats in the embedded journal."""

import sqlite3
from collections.abc import Awaitable, Callable, Sequence

from typing_extensions import override

from isthmus.encoding.codec import JsonObject
from isthmus.journal.port.saved_chats import ChatPlace, SavedChat
from isthmus.journal.sql.chats import ADD, FOUND, SIZE, SqlChats, check_room, saved_before
from isthmus.journal.sql.reads import RowReader, RowWriter
from isthmus.journal.sql.rows import JSON
from isthmus.journal.sqlite.writer import GroupWriter


class SqliteChats(SqlChats):
    """A :class:`~isthmus.journal.port.saved_chats.ChatStore` on the threads of an SqliteJournal."""

    def __init__(self, writer: GroupWriter, read: RowReader, write: RowWriter, clock: Callable[[], float]) -> None:
        super().__init__(read, write)
        self._writer = writer
        self._clock = clock

    @override
    def save(self, place: ChatPlace, chat: SavedChat, messages: Sequence[JsonObject]) -> "Awaitable[SavedChat | None]":
        body = JSON(list(messages))
        key = (place.user, place.workspace, chat.name)
        values = (*key, chat.title, len(messages), chat.task_id, self._clock(), body)

        def work(connection: sqlite3.Connection) -> SavedChat | None:
            is_taken, known = saved_before(connection.execute(FOUND, key).fetchone(), chat)
            if not is_taken:
                number, size = connection.execute(SIZE, (place.user,)).fetchone()
                check_room(number, size, body)
                connection.execute(ADD, values)
            return known

        return self._writer.submit(work)
