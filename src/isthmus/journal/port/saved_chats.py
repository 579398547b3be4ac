"""The saved chats of users: copies of conversations under names, by user and workspace.

A copy depends on no task, so that it outlives the removal of the tasks that it was made from. It stays until its user
deletes it. The journal stores them, and the command ``/chat`` uses them.
"""

from collections.abc import Awaitable, Sequence
from typing import Protocol

from isthmus.encoding.codec import JsonObject
from isthmus.record import record

MAXIMUM_CHATS = 200
"""Maximum number of saved chats of one user."""
MAXIMUM_CHARACTERS = 32 * 1024 * 1024
"""Maximum size of all saved chats of one user together as JSON, in characters."""


@record
class ChatPlace:
    """The place of a user's chats: the workspace (an absolute path) in which they were saved.

    ``user`` is empty for the local user.
    """

    user: str
    workspace: str


@record
class SavedChat:
    """A saved chat without its messages. ``title`` is its first prompt; ``saved_at`` is in Unix seconds.

    ``task_id`` is the task that saved it.
    """

    name: str
    title: str
    messages: int
    task_id: str
    saved_at: float = 0.0


class ChatStore(Protocol):
    """The store of all saved chats. All methods raise an :class:`~isthmus.errors.IsthmusError` if it cannot be used."""

    def save(self, place: ChatPlace, chat: SavedChat, messages: Sequence[JsonObject]) -> "Awaitable[SavedChat | None]":
        """Save a chat, now; return the chat that has its name already, in which case nothing is written.

        A chat that the same task has saved is left as it is, and counts as saved.

        Raises:
            LimitReached: the user has MAXIMUM_CHATS, or they would be larger than MAXIMUM_CHARACTERS.
        """
        ...

    def delete(self, place: ChatPlace, name: str) -> Awaitable[bool]:
        """Delete a chat; return whether there was one of this name."""
        ...

    async def chats(self, place: ChatPlace) -> Sequence[SavedChat]:
        """Return the chats of a place, the one saved last first."""
        ...

    async def messages(self, place: ChatPlace, name: str) -> tuple[JsonObject, ...] | None:
        """Return the messages of a chat; None if there is none of this name."""
        ...
