"""The saved chats of a journal in PostgreSQL."""

from collections.abc import Awaitable, Sequence

from typing_extensions import override

from isthmus.encoding.codec import JsonObject
from isthmus.journal.port.saved_chats import ChatPlace, SavedChat
from isthmus.journal.postgres.driver import Connection
from isthmus.journal.postgres.reads import numbered
from isthmus.journal.postgres.statements import lock_number, storable
from isthmus.journal.postgres.writer import PostgresWriter
from isthmus.journal.sql.chats import ADD, FOUND, SIZE, SqlChats, check_room, saved_before
from isthmus.journal.sql.reads import RowReader, RowWriter
from isthmus.journal.sql.rows import JSON


class PostgresChats(SqlChats):
    """A :class:`~isthmus.journal.port.saved_chats.ChatStore` in a database."""

    def __init__(self, writer: PostgresWriter, read: RowReader, write: RowWriter) -> None:
        super().__init__(read, write)
        self._writer = writer

    @override
    def save(self, place: ChatPlace, chat: SavedChat, messages: Sequence[JsonObject]) -> "Awaitable[SavedChat | None]":
        body = JSON(list(messages))
        key = (place.user, place.workspace, chat.name)

        async def work(connection: Connection, now: float) -> SavedChat | None:
            await connection.execute("SELECT pg_advisory_xact_lock($1)", lock_number("chats", place.user))
            is_taken, known = saved_before(await connection.fetchrow(numbered(FOUND), *key), chat)
            if not is_taken:
                number, size = await connection.fetchrow(numbered(SIZE), place.user)
                check_room(number, size, body)
                values = (*key, storable(chat.title), len(messages), chat.task_id, now, body)
                await connection.execute(numbered(ADD), *values)
            return known

        return self._writer.run(work)
