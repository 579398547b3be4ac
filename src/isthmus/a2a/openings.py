"""Memory of how clients opened tasks: with the development-tool extension, in a dialect, or with neither.

The document of the extension names no header, and its client states the extension in the first message alone. So a task
and its session stay in the form in which they were opened, for every request that states no other. The journal has the
form of each task, in its first event.
"""

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeAlias, cast

from isthmus.a2a.protocol.extension import (
    NOT_ACTIVE,
    URI,
    Activation,
    IncompatibleExtensionError,
    activation,
)
from isthmus.a2a.protocol.operations import POLLED
from isthmus.a2a.protocol.parameters import ID_CHARACTERS
from isthmus.a2a.protocol.tool_answers import has_answer
from isthmus.a2a.service import close
from isthmus.a2a.wire import Opening
from isthmus.client import AgentClient, TaskError, TaskQuery
from isthmus.events import AgentEvent, Command, Prompt

DIALECT = "dialect"
"""Key in a session's stored AgentSettings for the dialect of its client; it is our own."""
REMEMBERED = 10_000
"""Maximum number of tasks and sessions that are remembered."""
_Key: TypeAlias = tuple[str, str, str]
"""A user, "task" or "session", and its id: nothing of a user's tasks shows in the answers to others."""


class Openings:
    """Memory of the openings of tasks and sessions; the least recently used one is forgotten, and read again."""

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._limit = limit
        self._known: OrderedDict[_Key, Opening] = OrderedDict()

    def note(self, task_id: str, context_id: str, user: str, opening: Opening) -> None:
        """Remember the opening of a task; later tasks of its session have it too."""
        self._set((user, "task", task_id), opening)
        self._set((user, "session", context_id), opening)

    async def of(self, params: Mapping[str, Any], agent: AgentClient, user: str) -> Opening | None:
        """Return the opening of the task or session that a request is about; None if there is none.

        ``agent`` is the caller's, and is asked about what is not remembered.
        """
        task_id, context_id = _subject(params)
        if task_id is not None:
            return await self._of_task(task_id, agent, user)
        return None if context_id is None else await self._of_session(context_id, agent, user)

    async def _of_task(self, task_id: str, agent: AgentClient, user: str) -> Opening | None:
        key = (user, "task", task_id)
        known = self._get(key)
        if known is None and (known := await _read(agent, task_id)) is not None:
            self._set(key, known)
        return known

    async def _of_session(self, context_id: str, agent: AgentClient, user: str) -> Opening | None:
        key = (user, "session", context_id)
        known = self._get(key)
        if known is not None:
            return known
        try:
            newest = (await agent.list_tasks(TaskQuery(1, context_id))).tasks
        except TaskError:
            return None
        if newest and (known := await self._of_task(newest[0].task_id, agent, user)) is not None:
            self._set(key, known)
        return known

    def _get(self, key: _Key) -> Opening | None:
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)

    def _set(self, key: _Key, opening: Opening) -> None:
        self._known[key] = opening
        self._known.move_to_end(key)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)


def remembered_activation(params: Mapping[str, Any], opening: Opening | None) -> Activation:
    """Return the activation of a request that states neither the extension nor another one.

    It is the activation of the task or session. An answer in the form of the extension activates it as well, unless the
    client of the task speaks A2A without it: its question says that this form is taken.
    """
    if opening is not None and opening.extension is not None:
        return Activation(opening.extension, is_stated=False) if opening.extension else NOT_ACTIVE
    return Activation(URI, is_stated=False) if has_answer(params) else NOT_ACTIVE


def _subject(params: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the ids of the task and of the session that a request is about, in any version's spelling."""
    message = params.get("message")
    holder = cast("Mapping[str, Any]", message) if isinstance(message, Mapping) else params
    names = ("taskId", "task_id") if holder is message else ("taskId", "task_id", "id")
    return _first_text(holder, *names), _first_text(holder, "contextId", "context_id")


def _first_text(source: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these values that can be an id; others are refused when the request is decoded."""
    values = (source.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and 0 < len(value) <= ID_CHARACTERS), None)


async def _read(agent: AgentClient, task_id: str) -> Opening | None:
    """Return the opening of a task by its first event; None if the caller has no task with this id."""
    try:
        turn = await agent.follow(task_id, 0)
        try:
            first = await anext(aiter(turn.deliveries), None) if turn.snapshot.seq else None
        finally:
            await close(turn.deliveries)
    except TaskError:
        return None
    return Opening() if first is None else _opening_from(first.event)


def opening_of(extension: str | None, settings: Mapping[str, Any] | None) -> Opening:
    """Return the opening of a task by the extension of its first message or command, and by its stored settings."""
    found = settings or {}
    dialect = found.get(DIALECT)
    return Opening(extension, dialect if isinstance(dialect, str) else "", is_polled=found.get(POLLED) is True)


def _opening_from(event: AgentEvent) -> Opening:
    if not isinstance(event, Prompt | Command):
        return Opening()
    extension = event.extension
    if extension is None and isinstance(event, Prompt):  # by a version of Isthmus that did not store it
        with suppress(IncompatibleExtensionError):
            extension = activation((), event.metadata or {}).uri
    return opening_of(extension, event.settings)
