"""A2A 0.3, answers: how this version writes tasks, events, parts and push targets. Objects have a ``kind``."""

from isthmus.a2a.wire import JsonDict
from isthmus.client import PushTarget
from isthmus.events import ArtifactPart, TaskState


class ShapeV03:
    """See :class:`isthmus.a2a.protocol.task_encoder.Shape`; each method is that of the port."""

    def state(self, state: TaskState) -> str:
        """Ours are those of 0.3."""
        return state.value

    def text(self, text: str) -> JsonDict:
        """Return a TextPart."""
        return {"kind": "text", "text": text}

    def data(self, data: JsonDict) -> JsonDict:
        """Return a DataPart."""
        return {"kind": "data", "data": data}

    def part(self, part: ArtifactPart) -> JsonDict:
        """Return a TextPart, DataPart or FilePart."""
        if part.text is not None:
            return self.text(part.text)
        if part.data is not None:
            return self.data(dict(part.data))
        file = {"bytes": part.raw, "uri": part.url, "mimeType": part.media_type, "name": part.filename}
        return {"kind": "file", "file": {name: value for name, value in file.items() if value is not None}}

    def message(self, role: str, message_id: str, parts: list[JsonDict], ids: JsonDict) -> JsonDict:
        """Return a Message."""
        return {"kind": "message", "role": role, "messageId": message_id, "parts": parts, **ids}

    def task(self, task: JsonDict) -> JsonDict:
        """Return a Task."""
        return {"kind": "task", **task}

    def status_update(self, ids: JsonDict, status: JsonDict, metadata: JsonDict | None, *, final: bool) -> JsonDict:
        """Return a TaskStatusUpdateEvent."""
        event: JsonDict = {"kind": "status-update", **ids, "status": status, "final": final}
        if metadata is not None:
            event["metadata"] = metadata
        return event

    def artifact_update(self, event: JsonDict) -> JsonDict:
        """Return a TaskArtifactUpdateEvent."""
        return {"kind": "artifact-update", **event}


def encode_push(task_id: str, target: PushTarget) -> JsonDict:
    """Return a TaskPushNotificationConfig. Credentials are not given back."""
    config: JsonDict = {"id": target.id, "url": target.url}
    if target.token is not None:
        config["token"] = target.token
    if target.scheme is not None:
        config["authentication"] = {"schemes": [target.scheme]}
    return {"taskId": task_id, "pushNotificationConfig": config}
