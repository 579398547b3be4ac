"""Encoder of tasks, events, parts and push targets in A2A 0.3, where objects have a ``kind``."""

from typing_extensions import override

from isthmus.a2a.protocol.shape import Shape
from isthmus.a2a.wire import JsonDict
from isthmus.client import PushTarget
from isthmus.events import ArtifactPart, TaskState


class ShapeV03(Shape):
    """Writer of the objects of A2A 0.3 in JSON-RPC."""

    @override
    def state(self, state: TaskState) -> str:
        return state.value

    @override
    def text(self, text: str) -> JsonDict:
        return {"kind": "text", "text": text}

    @override
    def data(self, data: JsonDict) -> JsonDict:
        return {"kind": "data", "data": data}

    @override
    def part(self, part: ArtifactPart) -> JsonDict:
        if part.text is not None:
            return self.text(part.text)
        if part.data is not None:
            return self.data(dict(part.data))
        file = {"bytes": part.raw, "uri": part.url, "mimeType": part.media_type, "name": part.filename}
        return {"kind": "file", "file": {name: value for name, value in file.items() if value is not None}}

    @override
    def message(self, role: str, message_id: str, parts: list[JsonDict], ids: JsonDict) -> JsonDict:
        return {"kind": "message", "role": role, "messageId": message_id, "parts": parts, **ids}

    @override
    def task(self, task: JsonDict) -> JsonDict:
        return {"kind": "task", **task}

    @override
    def status_update(self, ids: JsonDict, status: JsonDict, metadata: JsonDict | None, *, final: bool) -> JsonDict:
        event: JsonDict = {"kind": "status-update", **ids, "status": status, "final": final}
        if metadata is not None:
            event["metadata"] = metadata
        return event

    @override
    def artifact_update(self, event: JsonDict) -> JsonDict:
        return {"kind": "artifact-update", **event}


def encode_push(task_id: str, target: PushTarget) -> JsonDict:
    """Return a TaskPushNotificationConfig, without the credentials."""
    config: JsonDict = {"id": target.id, "url": target.url}
    if target.token is not None:
        config["token"] = target.token
    if target.scheme is not None:
        config["authentication"] = {"schemes": [target.scheme]}
    return {"taskId": task_id, "pushNotificationConfig": config}
