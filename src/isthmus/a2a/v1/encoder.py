"""Encoder of tasks, events, parts, push targets and errors in A2A 1.0, as ProtoJSON. Sans-I/O.

Whole numbers in data stay whole. Errors have details of ``google.rpc``.
"""

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from isthmus.a2a.protocol.errors import names_of
from isthmus.a2a.protocol.jsonrpc import InvalidParamsError
from isthmus.a2a.protocol.shape import Shape
from isthmus.a2a.protocol.vocabulary import V1_ROLES, V1_STATES
from isthmus.a2a.wire import JsonDict
from isthmus.client import PushTarget
from isthmus.events import ArtifactPart, TaskState
from isthmus.rpc.messages import RpcError

_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
_DOMAIN = "a2a-protocol.org"


class ShapeV1(Shape):
    """Writer of the objects of A2A 1.0."""

    @override
    def state(self, state: TaskState) -> str:
        return V1_STATES[state.value]

    @override
    def text(self, text: str) -> JsonDict:
        return {"text": text}

    @override
    def data(self, data: JsonDict) -> JsonDict:
        return {"data": data, "mediaType": "application/json"}

    @override
    def part(self, part: ArtifactPart) -> JsonDict:
        found = {"text": part.text, "data": part.data, "raw": part.raw, "url": part.url}
        found |= {"mediaType": part.media_type, "filename": part.filename}
        return {name: value for name, value in found.items() if value is not None}

    @override
    def message(self, role: str, message_id: str, parts: list[JsonDict], ids: JsonDict) -> JsonDict:
        return {"role": V1_ROLES[role], "messageId": message_id, "parts": parts, **ids}

    @override
    def task(self, task: JsonDict) -> JsonDict:
        return task

    @override
    def status_update(self, ids: JsonDict, status: JsonDict, metadata: JsonDict | None, *, final: bool) -> JsonDict:
        del final  # in 1.0 the end of the stream shows it
        event: JsonDict = {**ids, "status": status}
        if metadata is not None:
            event["metadata"] = metadata
        return {"statusUpdate": event}

    @override
    def artifact_update(self, event: JsonDict) -> JsonDict:
        return {"artifactUpdate": event}


def encode_push(task_id: str, target: PushTarget) -> JsonDict:
    """Return a TaskPushNotificationConfig, without the credentials."""
    config: JsonDict = {"id": target.id, "taskId": task_id, "url": target.url}
    if target.token is not None:
        config["token"] = target.token
    if target.scheme is not None:
        config["authentication"] = {"scheme": target.scheme}
    return config


def add_details(error: RpcError) -> RpcError:
    """Return the error with the details that 1.0 requires: an ErrorInfo, and for a parameter a BadRequest."""
    metadata = {} if not isinstance(error.data, Mapping) else {name: str(value) for name, value in error.data.items()}
    reason = names_of(error.code).v1_reason
    details: list[dict[str, Any]] = [{"@type": _ERROR_INFO, "reason": reason, "domain": _DOMAIN, "metadata": metadata}]
    if isinstance(error, InvalidParamsError):
        violation = {"field": error.field, "description": str(error)}
        details.append({"@type": _BAD_REQUEST, "fieldViolations": [violation]})
    return RpcError(error.code, str(error), details)
