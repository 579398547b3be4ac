"""Items that an A2A server sends, the same for all protocol versions: tasks, status updates, artifacts and messages.

:class:`ItemReader` reads them from JSON; an :class:`ItemFormat` holds the differences of one version. The meaning of an
item for its task is in :mod:`isthmus.a2a.protocol.stream_decoder`. Sans-I/O.
"""

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

from isthmus.a2a.protocol.vocabulary import FOREIGN_STATES
from isthmus.errors import DecodeError
from isthmus.events import ArtifactPart, ArtifactUpdate, TaskState
from isthmus.record import record
from isthmus.task_view import text_of_parts

JsonMap: TypeAlias = Mapping[str, Any]


@record
class MessageItem:
    """A message; ``role`` is ``user`` or ``agent``. Fields that the server left out are empty."""

    message_id: str
    role: str
    parts: tuple[ArtifactPart, ...]
    metadata: JsonMap | None = None
    task_id: str = ""
    context_id: str = ""

    @property
    def text(self) -> str:
        """Everything in the message that can be shown as text."""
        return text_of_parts(self.parts)

    @property
    def data(self) -> tuple[JsonMap, ...]:
        """Objects of the data parts."""
        return tuple(part.data for part in self.parts if part.data is not None)


@record
class Status:
    """The state of a task at the Unix time ``at`` (seconds).

    ``foreign`` is the server's name for a state that Isthmus does not have.
    """

    state: TaskState
    message: MessageItem | None
    at: float
    foreign: str | None = None


@record
class ArtifactItem:
    """An artifact of a task, or a further part of one."""

    artifact_id: str
    parts: tuple[ArtifactPart, ...]
    name: str | None = None
    description: str | None = None
    append: bool = False
    last_chunk: bool = True
    task_id: str = ""
    context_id: str = ""
    metadata: JsonMap | None = None

    @property
    def update(self) -> ArtifactUpdate:
        """The artifact as an event."""
        return ArtifactUpdate(
            self.artifact_id, self.parts, self.name, self.description, self.append, last_chunk=self.last_chunk
        )


@record
class StatusItem:
    """A status update of a task. ``is_final``: the stream ends with it; A2A 1.0 does not state this."""

    task_id: str
    context_id: str
    status: Status
    metadata: JsonMap | None
    is_final: bool = False


@record
class TaskItem:
    """A whole task."""

    task_id: str
    context_id: str
    status: Status
    history: tuple[MessageItem, ...]
    artifacts: tuple[ArtifactItem, ...]
    metadata: JsonMap | None


Item: TypeAlias = TaskItem | StatusItem | ArtifactItem | MessageItem
"""Content of one event of a stream."""


@record
class ItemFormat:
    """The format of items in one protocol version.

    ``states`` and ``roles`` map its names to the names of 0.3. ``part`` reads a part; it returns None for an empty one.
    """

    version: str
    states: Mapping[str, str]
    roles: Mapping[str, str]
    part: Callable[[JsonMap], ArtifactPart | None]


class ItemReader:
    """Reads the objects of one protocol version. Every method raises DecodeError, which names the invalid field."""

    def __init__(self, form: ItemFormat) -> None:
        self._form = form

    def task(self, value: object) -> TaskItem:
        """Return a Task."""
        task = object_of(value, "Task")
        task_id, context_id = text_field(task, "id", "Task"), str(task.get("contextId") or "")
        return TaskItem(
            task_id,
            context_id,
            self.status(task.get("status"), "Task.status"),
            tuple(self.message(item) for item in objects_of(task.get("history"))),
            tuple(self._artifact(item, task_id, context_id) for item in objects_of(task.get("artifacts"))),
            optional_object(task.get("metadata")),
        )

    def status_update(self, value: object) -> StatusItem:
        """Return a TaskStatusUpdateEvent."""
        event = object_of(value, "status-update")
        return StatusItem(
            str(event.get("taskId") or ""),
            str(event.get("contextId") or ""),
            self.status(event.get("status"), "status-update.status"),
            optional_object(event.get("metadata")),
            event.get("final") is True,
        )

    def artifact_update(self, value: object) -> ArtifactItem:
        """Return a TaskArtifactUpdateEvent."""
        event = object_of(value, "artifact-update")
        artifact = object_of(event.get("artifact"), "artifact-update.artifact")
        ids = str(event.get("taskId") or ""), str(event.get("contextId") or "")
        is_last = event.get("lastChunk") is not False if "lastChunk" in event else event.get("append") is not True
        return self._artifact(artifact, *ids, append=event.get("append") is True, last_chunk=is_last)

    def message(self, value: object) -> MessageItem:
        """Return a Message."""
        message = object_of(value, "Message")
        role = message.get("role")
        return MessageItem(
            str(message.get("messageId") or ""),
            "user" if self._form.roles.get(str(role)) == "user" else "agent",
            self._parts(message),
            optional_object(message.get("metadata")),
            str(message.get("taskId") or ""),
            str(message.get("contextId") or ""),
        )

    def status(self, value: object, where: str) -> Status:
        """Return a TaskStatus."""
        status = object_of(value, where)
        name = status.get("state")
        known = self._form.states.get(name) if isinstance(name, str) else None
        if known is None:
            raise DecodeError("status.state", f"a task state of A2A {self._form.version}", name)
        message = optional_object(status.get("message"))
        foreign = FOREIGN_STATES.get(known)
        return Status(
            foreign if foreign is not None else TaskState(known),
            self.message(message) if message is not None else None,
            time_of(status.get("timestamp")),
            known if foreign is not None else None,
        )

    def _artifact(
        self, artifact: JsonMap, task_id: str, context_id: str, *, append: bool = False, last_chunk: bool = True
    ) -> ArtifactItem:
        return ArtifactItem(
            str(artifact.get("artifactId") or "artifact"),
            self._parts(artifact),
            optional_text(artifact.get("name")),
            optional_text(artifact.get("description")),
            append,
            last_chunk,
            task_id,
            context_id,
            optional_object(artifact.get("metadata")),
        )

    def _parts(self, holder: JsonMap) -> tuple[ArtifactPart, ...]:
        found = (self._form.part(part) for part in objects_of(holder.get("parts")))
        return tuple(part for part in found if part is not None)


def data_part(value: object, media_type: str | None = None, filename: str | None = None) -> ArtifactPart:
    """Return a data part; a value that is not an object becomes its JSON text."""
    if isinstance(value, Mapping):
        return ArtifactPart(data=cast("JsonMap", value), media_type=media_type, filename=filename)
    return ArtifactPart(text=json.dumps(value, ensure_ascii=False), media_type="application/json", filename=filename)


def time_of(value: object) -> float:
    """Return an ISO 8601 time as Unix seconds, or the current time for any other value."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return time.time()
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return time.time()


def object_of(value: object, where: str) -> JsonMap:
    """Return the value, which must be an object."""
    if not isinstance(value, Mapping):
        raise DecodeError(where, "an object", value)
    return cast("JsonMap", value)


def optional_object(value: object) -> JsonMap | None:
    """Return the value if it is an object."""
    return cast("JsonMap", value) if isinstance(value, Mapping) else None


def objects_of(value: object) -> list[JsonMap]:
    """Return the objects in a list; an empty list for any other value."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("JsonMap", item) for item in items if isinstance(item, Mapping)]


def text_field(source: JsonMap, name: str, where: str) -> str:
    """Return a field that must be a string."""
    value = source.get(name)
    if not isinstance(value, str):
        raise DecodeError(f"{where}.{name}", "a string", value)
    return value


def optional_text(value: object) -> str | None:
    """Return the value if it is a string that is not empty."""
    return value if isinstance(value, str) and value else None
