"""A2A 0.3 over HTTP and JSON: its ProtoJSON into the parameters of JSON-RPC, and the shape of answers. Sans-I/O.

The document leaves the JSON of this binding open, and the SDKs of 0.3 (Python, JavaScript, Java) write that of the
.proto of the same version: ``content`` for parts, roles and states by the names of enums, a data part around its data,
``task``, ``message``, ``statusUpdate`` and ``artifactUpdate`` around what is answered. A message that has ``parts`` is
read as JSON-RPC writes it. Names are read in both spellings of ProtoJSON, and written in lowerCamelCase.
"""

from collections.abc import Mapping
from typing import Any, cast

from isthmus.a2a.protocol.parameters import proto_names
from isthmus.a2a.protocol.vocabulary import V1_ROLES, V1_STATES
from isthmus.a2a.v03.encoder import encode_push
from isthmus.a2a.wire import JsonDict
from isthmus.client import PushTarget
from isthmus.events import ArtifactPart, TaskState

_CANCELLED = "TASK_STATE_CANCELLED"
"""As the .proto of 0.3 spells it; that of 1.0 has one L."""
_ROLES: Mapping[str | int, str] = {"ROLE_USER": "user", 1: "user", "ROLE_AGENT": "agent", 2: "agent"}
_EMPTY = ("", None)


def send_params(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of ``message/send`` in a SendMessageRequest; what does not fit is left to their reader."""
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

    Some clients send the TaskPushNotificationConfig alone, which is read as well.
    """
    request = proto_names(body)
    config = _object(request.get("config")) or request
    push = _object(config.get("pushNotificationConfig"))
    if push is None:
        return {}
    push_id = push.get("id") or request.get("configId")
    return {"pushNotificationConfig": {**_push(push), **({} if push_id in _EMPTY else {"id": push_id})}}


class ProtoShapeV03:
    """See :class:`isthmus.a2a.protocol.task_encoder.Shape`; each method is that of the port."""

    def state(self, state: TaskState) -> str:
        """Return a TaskState."""
        return _CANCELLED if state is TaskState.CANCELED else V1_STATES[state.value]

    def text(self, text: str) -> JsonDict:
        """Return a Part with text."""
        return {"text": text}

    def data(self, data: JsonDict) -> JsonDict:
        """Return a Part with a DataPart."""
        return {"data": {"data": data}}

    def part(self, part: ArtifactPart) -> JsonDict:
        """Return a Part."""
        if part.text is not None:
            return self.text(part.text)
        if part.data is not None:
            return self.data(dict(part.data))
        file = {"fileWithBytes": part.raw, "fileWithUri": part.url, "mimeType": part.media_type, "name": part.filename}
        return {"file": {name: value for name, value in file.items() if value is not None}}

    def message(self, role: str, message_id: str, parts: list[JsonDict], ids: JsonDict) -> JsonDict:
        """Return a Message."""
        return {"role": V1_ROLES[role], "messageId": message_id, "content": parts, **ids}

    def task(self, task: JsonDict) -> JsonDict:
        """Return a Task."""
        return task

    def status_update(self, ids: JsonDict, status: JsonDict, metadata: JsonDict | None, *, final: bool) -> JsonDict:
        """Return a StreamResponse."""
        event: JsonDict = {**ids, "status": status, "final": final}
        if metadata is not None:
            event["metadata"] = metadata
        return {"statusUpdate": event}

    def artifact_update(self, event: JsonDict) -> JsonDict:
        """Return a StreamResponse."""
        return {"artifactUpdate": event}


def encode_named_push(task_id: str, target: PushTarget) -> JsonDict:
    """Return a TaskPushNotificationConfig, which has a resource's name for its ids. Credentials are not given back."""
    config = encode_push(task_id, target)["pushNotificationConfig"]
    return {"name": f"tasks/{task_id}/pushNotificationConfigs/{target.id}", "pushNotificationConfig": config}


def _object(value: object) -> dict[str, Any] | None:
    return proto_names(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else None


def _configuration(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a SendMessageConfiguration: a flag that is not there is false, and a number that is 0 is not set."""
    push = _object(found.get("pushNotification"))
    configuration = {
        **found,
        "blocking": found.get("blocking", False),
        "historyLength": found.get("historyLength") or None,
    }
    return configuration if push is None else {**configuration, "pushNotificationConfig": _push(push)}


def _push(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a PushNotificationConfig without what is not set."""
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
