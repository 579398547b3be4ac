"""ProtoJSON of A2A 0.3 over HTTP: translates requests into the parameters of JSON-RPC, and writes answers. Sans-I/O.

The document of 0.3 does not define the JSON of this binding. The SDKs of 0.3 (Python, JavaScript, Java) use the
ProtoJSON of that version's .proto file: parts are ``content``, roles and states have the names of enums, data parts are
nested, and answers are inside ``task``, ``message``, ``statusUpdate`` or ``artifactUpdate``. A message with ``parts``
is read as in JSON-RPC. Names are read in both spellings of ProtoJSON, and written in lowerCamelCase.
"""

from collections.abc import Mapping
from typing import Any, cast

from typing_extensions import override

from isthmus.a2a.protocol.parameters import proto_names
from isthmus.a2a.protocol.shape import Shape
from isthmus.a2a.protocol.vocabulary import V1_ROLES, V1_STATES
from isthmus.a2a.v03.encoder import encode_push
from isthmus.a2a.wire import JsonDict
from isthmus.client import PushTarget
from isthmus.events import ArtifactPart, TaskState

_CANCELLED = "TASK_STATE_CANCELLED"
"""Spelling in the .proto file of 0.3; the one of 1.0 has a single L."""
_ROLES: Mapping[str | int, str] = {"ROLE_USER": "user", 1: "user", "ROLE_AGENT": "agent", 2: "agent"}
_EMPTY = ("", None)


def send_params(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of ``message/send`` in a SendMessageRequest; invalid values are left to their reader."""
    params = proto_names(body)
    message = _object(params.pop("request", None) or params.get("message"))
    if message is None or "parts" in message:
        return params
    configuration = _object(params.get("configuration"))
    if configuration is not None:
        params["configuration"] = _configuration(configuration)
    content = message.pop("content", None)
    if isinstance(content, list):
        content = [_part(part) for part in cast("list[Any]", content)]
    role = message.get("role")
    if isinstance(role, str | int):
        role = _ROLES.get(role, role)
    params["message"] = {**message, "role": role, "parts": content}
    return params


def push_params(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of ``tasks/pushNotificationConfig/set`` in a CreateTaskPushNotificationConfigRequest.

    A TaskPushNotificationConfig without the request around it, which some clients send, is read as well.
    """
    request = proto_names(body)
    config = _object(request.get("config")) or request
    push = _object(config.get("pushNotificationConfig"))
    if push is None:
        return {}
    push_id = push.get("id") or request.get("configId")
    return {"pushNotificationConfig": {**_push(push), **({} if push_id in _EMPTY else {"id": push_id})}}


class ProtoShapeV03(Shape):
    """Writer of the objects of A2A 0.3 as ProtoJSON."""

    @override
    def state(self, state: TaskState) -> str:
        return _CANCELLED if state is TaskState.CANCELED else V1_STATES[state.value]

    @override
    def text(self, text: str) -> JsonDict:
        return {"text": text}

    @override
    def data(self, data: JsonDict) -> JsonDict:
        return {"data": {"data": data}}

    @override
    def part(self, part: ArtifactPart) -> JsonDict:
        if part.text is not None:
            return self.text(part.text)
        if part.data is not None:
            return self.data(dict(part.data))
        file = {"fileWithBytes": part.raw, "fileWithUri": part.url, "mimeType": part.media_type, "name": part.filename}
        return {"file": {name: value for name, value in file.items() if value is not None}}

    @override
    def message(self, role: str, message_id: str, parts: list[JsonDict], ids: JsonDict) -> JsonDict:
        return {"role": V1_ROLES[role], "messageId": message_id, "content": parts, **ids}

    @override
    def task(self, task: JsonDict) -> JsonDict:
        return task

    @override
    def status_update(self, ids: JsonDict, status: JsonDict, metadata: JsonDict | None, *, final: bool) -> JsonDict:
        event: JsonDict = {**ids, "status": status, "final": final}
        if metadata is not None:
            event["metadata"] = metadata
        return {"statusUpdate": event}

    @override
    def artifact_update(self, event: JsonDict) -> JsonDict:
        return {"artifactUpdate": event}


def encode_named_push(task_id: str, target: PushTarget) -> JsonDict:
    """Return a TaskPushNotificationConfig without the credentials; a resource name takes the place of its ids."""
    config = encode_push(task_id, target)["pushNotificationConfig"]
    return {"name": f"tasks/{task_id}/pushNotificationConfigs/{target.id}", "pushNotificationConfig": config}


def _object(value: object) -> dict[str, Any] | None:
    return proto_names(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else None


def _configuration(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a SendMessageConfiguration: a missing flag is false, and the number 0 counts as not set."""
    push = _object(found.get("pushNotification"))
    configuration = {
        **found,
        "blocking": found.get("blocking", False),
        "historyLength": found.get("historyLength") or None,
    }
    return configuration if push is None else {**configuration, "pushNotificationConfig": _push(push)}


def _push(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a PushNotificationConfig without its empty members."""
    authentication = _object(config.get("authentication"))
    found = {name: value for name, value in config.items() if value not in _EMPTY and name != "authentication"}
    if authentication:
        found["authentication"] = {name: value for name, value in authentication.items() if value not in _EMPTY}
    return found


def _part(part: object) -> object:
    found = _object(part)
    if found is None or "kind" in found:
        return part
    file, data = _object(found.get("file")), _object(found.get("data"))
    if file is not None:
        names = {"fileWithUri": "uri", "fileWithBytes": "bytes", "mimeType": "mimeType", "name": "name"}
        content = {names.get(name, name): value for name, value in file.items() if value not in _EMPTY}
        return {"kind": "file", "file": content}
    if data is not None:
        return {"kind": "data", "data": data.get("data", {})}
    return {"kind": "text", "text": found.get("text")} if "text" in found else part
