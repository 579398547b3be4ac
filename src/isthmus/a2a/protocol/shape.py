"""The form in which a version of the protocol writes the objects of tasks and their events."""

from typing import Protocol

from isthmus.a2a.wire import JsonDict
from isthmus.events import ArtifactPart, TaskState


class Shape(Protocol):
    """Writer of the objects of A2A in one protocol version."""

    def state(self, state: TaskState) -> str:
        """Return the name of a task state."""
        ...

    def text(self, text: str) -> JsonDict:
        """Return a text part."""
        ...

    def data(self, data: JsonDict) -> JsonDict:
        """Return a data part."""
        ...

    def part(self, part: ArtifactPart) -> JsonDict:
        """Return a part of an artifact."""
        ...

    def message(self, role: str, message_id: str, parts: list[JsonDict], ids: JsonDict) -> JsonDict:
        """Return a Message; ``role`` is ``user`` or ``agent``."""
        ...

    def task(self, task: JsonDict) -> JsonDict:
        """Return a Task, given the members that all versions have."""
        ...

    def status_update(self, ids: JsonDict, status: JsonDict, metadata: JsonDict | None, *, final: bool) -> JsonDict:
        """Return a TaskStatusUpdateEvent as a stream item; ``ids`` holds taskId and contextId."""
        ...

    def artifact_update(self, event: JsonDict) -> JsonDict:
        """Return a TaskArtifactUpdateEvent as a stream item, given its members."""
        ...
