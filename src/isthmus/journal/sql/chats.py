"""The saved chats in a journal in an SQL database. `isthmus.journal.port.saved_chats` documents each method."""

import json
from collections.abc import Awaitable, Sequence
from typing import Any

from typing_extensions import override

from isthmus.client import LimitReached
from isthmus.encoding.codec import JsonObject
from isthmus.journal.port.saved_chats import MAXIMUM_CHARACTERS, MAXIMUM_CHATS, ChatPlace, ChatStore, SavedChat
from isthmus.journal.sql.reads import RowReader, RowWriter, changed

COLUMNS = "name, title, count, task, saved"
FOUND = f'SELECT {COLUMNS} FROM chats WHERE "user" = ? AND workspace = ? AND name = ?'
"""Query for one chat."""
SIZE = 'SELECT count(*), coalesce(sum(length(body)), 0) FROM chats WHERE "user" = ?'
"""Query for the number of a user's chats, and their size in characters."""
ADD = f'INSERT INTO chats ("user", workspace, {COLUMNS}, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)'
"""Statement that adds a chat."""
_DELETE = 'DELETE FROM chats WHERE "user" = ? AND workspace = ? AND name = ?'


class SqlChats(ChatStore):
    """A :class:`~isthmus.journal.port.saved_chats.ChatStore` in a table of a journal."""

    def __init__(self, read: RowReader, write: RowWriter) -> None:
        self._read = read
        self._write = write

    @override
    def delete(self, place: ChatPlace, name: str) -> Awaitable[bool]:
        return changed(self._write, _DELETE, (place.user, place.workspace, name))

    @override
    async def chats(self, place: ChatPlace) -> Sequence[SavedChat]:
        query = f'SELECT {COLUMNS} FROM chats WHERE "user" = ? AND workspace = ? ORDER BY saved DESC, name'
        return await self._read(query, (place.user, place.workspace), chat_from)

    @override
    async def messages(self, place: ChatPlace, name: str) -> tuple[JsonObject, ...] | None:
        query = 'SELECT body FROM chats WHERE "user" = ? AND workspace = ? AND name = ?'
        key = (place.user, place.workspace, name)
        found = await self._read(query, key, lambda values: tuple(json.loads(values[0])))
        return found[0] if found else None


def chat_from(values: Sequence[Any]) -> SavedChat:
    """Build a chat from the values of its columns."""
    return SavedChat(*values)


def saved_before(found: Sequence[Any] | None, chat: SavedChat) -> tuple[bool, SavedChat | None]:
    """Return whether a name is taken, and by which chat of another task; ``found`` are the columns of the one there."""
    if found is None:
        return False, None
    known = chat_from(found)
    return True, None if known.task_id == chat.task_id else known


def check_room(number: int, size: int, body: str) -> None:
    """Check that a user with ``number`` chats of ``size`` characters may save another one.

    Raises:
        LimitReached: it would be too many.
    """
    if number >= MAXIMUM_CHATS:
        raise LimitReached(f"you have {number} saved chats, which is the maximum; delete one of them first")
    if size + len(body) > MAXIMUM_CHARACTERS:
        raise LimitReached(
            f"the chat has {len(body):,} characters, and your other saved chats have {size:,}; the maximum is"
            f" {MAXIMUM_CHARACTERS:,} together. Delete some of them, or run /compress before you save"
        )
