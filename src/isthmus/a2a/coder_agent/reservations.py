"""Tasks that clients of the dialect ``coderAgent`` create before their first message (``POST /tasks``).

A reserved task is only an id with settings in memory: nothing runs, and a restart forgets it. The first message to it
creates the task with this id.
"""

import uuid
from collections import OrderedDict

from isthmus.encoding.codec import JsonObject
from isthmus.record import record

RESERVED_TASKS = 1000
"""Maximum number of reservations of one user."""


@record
class Reservation:
    """A task that does not exist yet. ``settings`` are our AgentSettings; ``user`` is the name of its user."""

    task_id: str
    context_id: str
    settings: JsonObject
    user: str


class Reservations:
    """The reservations of a server. Users see only their own; if one has too many, the oldest is dropped."""

    def __init__(self, limit: int = RESERVED_TASKS) -> None:
        self._limit = limit
        self._of_users: dict[str, OrderedDict[str, Reservation]] = {}

    def make(self, context_id: str | None, settings: JsonObject, user: str) -> Reservation:
        """Make a reservation."""
        made = Reservation(str(uuid.uuid4()), context_id or str(uuid.uuid4()), settings, user)
        waiting = self._of_users.setdefault(user, OrderedDict())
        waiting[made.task_id] = made
        if len(waiting) > self._limit:
            waiting.popitem(last=False)
        return made

    def get(self, task_id: str, user: str) -> Reservation | None:
        """Return the user's reservation with this id; None after its first message."""
        waiting = self._of_users.get(user)
        return None if waiting is None else waiting.get(task_id)

    def fulfil(self, task_id: str) -> None:
        """Drop the reservation of a task that now exists, if there is one."""
        for waiting in self._of_users.values():
            waiting.pop(task_id, None)

    def of(self, user: str) -> list[Reservation]:
        """Return all reservations of a user."""
        waiting = self._of_users.get(user)
        return [] if waiting is None else list(waiting.values())
