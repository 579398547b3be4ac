"""Tasks that a client of the dialect ``coderAgent`` made before their first message (``POST /tasks``).

Until then such a task is an id with settings, kept in memory: nothing runs, and a restart forgets it. The first message
to it makes the task, with this id. Deliberately not here: HTTP.
"""

import uuid
from collections import OrderedDict
from dataclasses import dataclass

from isthmus.encoding.codec import JsonObject

RESERVED_TASKS = 1000
"""Of one user."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A task to come. ``settings`` are our AgentSettings; ``user`` is the name of whose it is."""

    task_id: str
    context_id: str
    settings: JsonObject
    user: str


class Reservations:
    """The reservations of a server; of a user who has too many, the oldest is forgotten. Others' are not there."""

    def __init__(self, limit: int = RESERVED_TASKS) -> None:
        self._limit = limit
        self._of_users: dict[str, OrderedDict[str, Reservation]] = {}

    def make(self, context_id: str | None, settings: JsonObject, user: str) -> Reservation:
        """Return a new one."""
        made = Reservation(str(uuid.uuid4()), context_id or str(uuid.uuid4()), settings, user)
        waiting = self._of_users.setdefault(user, OrderedDict())
        waiting[made.task_id] = made
        if len(waiting) > self._limit:
            waiting.popitem(last=False)
        return made

    def get(self, task_id: str, user: str) -> Reservation | None:
        """Return the user's reservation of this id, while no message came to it."""
        waiting = self._of_users.get(user)
        return None if waiting is None else waiting.get(task_id)

    def fulfil(self, task_id: str) -> None:
        """The task of this id was made; one that never was reserved is let pass."""
        for waiting in self._of_users.values():
            waiting.pop(task_id, None)

    def of(self, user: str) -> list[Reservation]:
        """All of a user's."""
        waiting = self._of_users.get(user)
        return [] if waiting is None else list(waiting.values())
