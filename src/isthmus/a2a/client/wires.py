"""A client's requests in A2A 0.3 and 1.0 (methods and parameters), and the decoding of their results. Sans-I/O.

A ``ClientWire`` is one protocol version. The extension and the dialects add their parts to messages in
:mod:`isthmus.a2a.client.dialects`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast
from urllib.parse import quote

from typing_extensions import override

from isthmus.a2a.protocol.items import Item, TaskItem, object_of, objects_of, optional_object, optional_text, text_field
from isthmus.a2a.v03 import decoder as v03_decoder
from isthmus.a2a.v03.encoder import ShapeV03
from isthmus.a2a.v1 import decoder as v1_decoder
from isthmus.a2a.v1.encoder import ShapeV1
from isthmus.client import PushTarget
from isthmus.errors import DecodeError
from isthmus.events import MessagePart
from isthmus.record import record

JsonDict = dict[str, Any]


@record
class MethodCall:
    """A request: a method of JSON-RPC with its parameters."""

    method: str
    params: JsonDict


@record
class OutgoingMessage:
    """A message to be sent; ``metadata`` is the message's."""

    message_id: str
    parts: Sequence[MessagePart]
    task_id: str | None = None
    context_id: str | None = None
    metadata: JsonDict | None = None
    push: PushTarget | None = None


class ClientWire(Protocol):
    """The client's side of one protocol version. Decoding raises DecodeError for an unexpected shape."""

    version: str
    """Version of A2A: ``0.3`` or ``1.0``."""

    def message(self, outgoing: OutgoingMessage, *, stream: bool) -> MethodCall:
        """Return the request that sends a message; the answer is a stream, or one item at once."""
        ...

    def get(self, task_id: str, history_length: int | None = None) -> MethodCall:
        """Return the request for a task."""
        ...

    def cancel(self, task_id: str) -> MethodCall:
        """Return the request that stops a task."""
        ...

    def follow(self, task_id: str) -> MethodCall:
        """Return the request for a task's events from now on."""
        ...

    def tasks(self, limit: int, token: str = "") -> MethodCall:
        """Return the request for the tasks; ``token`` is the ``nextPageToken`` of the previous page."""
        ...

    def set_push(self, task_id: str, target: PushTarget) -> MethodCall:
        """Return the request that sets a push target."""
        ...

    def get_push(self, task_id: str, push_id: str) -> MethodCall:
        """Return the request for a push target."""
        ...

    def list_push(self, task_id: str) -> MethodCall:
        """Return the request for all push targets of a task."""
        ...

    def delete_push(self, task_id: str, push_id: str) -> MethodCall:
        """Return the request that deletes a push target."""
        ...

    def decode_item(self, result: object) -> Item:
        """Return a stream item, or the answer to a message."""
        ...

    def decode_task(self, result: object) -> TaskItem:
        """Return a task."""
        ...

    def decode_push(self, result: object) -> PushTarget:
        """Return a target."""
        ...

    def decode_pushes(self, result: object) -> Sequence[PushTarget]:
        """Return all targets."""
        ...


class ClientWireV03(ClientWire):
    """A2A 0.3 as a client speaks it."""

    version = "0.3"

    @override
    def message(self, outgoing: OutgoingMessage, *, stream: bool) -> MethodCall:
        parts = [ShapeV03().part(part) for part in outgoing.parts]
        params: JsonDict = {"message": {"kind": "message", "role": "user", **_message(outgoing), "parts": parts}}
        if outgoing.push is not None:
            params["configuration"] = {"pushNotificationConfig": self._push(outgoing.push)}
        if not stream:
            # The task is then polled, and can be cancelled meanwhile.
            params["configuration"] = {**params.get("configuration", {}), "blocking": False}
        return MethodCall("message/stream" if stream else "message/send", params)

    @override
    def get(self, task_id: str, history_length: int | None = None) -> MethodCall:
        return MethodCall("tasks/get", _task_params(task_id, history_length))

    @override
    def cancel(self, task_id: str) -> MethodCall:
        return MethodCall("tasks/cancel", {"id": task_id})

    @override
    def follow(self, task_id: str) -> MethodCall:
        return MethodCall("tasks/resubscribe", {"id": task_id})

    @override
    def tasks(self, limit: int, token: str = "") -> MethodCall:
        return MethodCall("isthmus/tasks", {"limit": limit})

    @override
    def set_push(self, task_id: str, target: PushTarget) -> MethodCall:
        params = {"taskId": task_id, "pushNotificationConfig": self._push(target)}
        return MethodCall("tasks/pushNotificationConfig/set", params)

    @override
    def get_push(self, task_id: str, push_id: str) -> MethodCall:
        params = {"id": task_id, "pushNotificationConfigId": push_id}
        return MethodCall("tasks/pushNotificationConfig/get", params)

    @override
    def list_push(self, task_id: str) -> MethodCall:
        return MethodCall("tasks/pushNotificationConfig/list", {"id": task_id})

    @override
    def delete_push(self, task_id: str, push_id: str) -> MethodCall:
        params = {"id": task_id, "pushNotificationConfigId": push_id}
        return MethodCall("tasks/pushNotificationConfig/delete", params)

    @override
    def decode_item(self, result: object) -> Item:
        return v03_decoder.decode_item(result)

    @override
    def decode_task(self, result: object) -> TaskItem:
        return v03_decoder.decode_task(result)

    @override
    def decode_push(self, result: object) -> PushTarget:
        holder = object_of(result, "TaskPushNotificationConfig")
        where = "TaskPushNotificationConfig.pushNotificationConfig"
        config = object_of(holder.get("pushNotificationConfig"), where)
        authentication = optional_object(config.get("authentication")) or {}
        schemes = authentication.get("schemes")
        named = cast("list[Any]", schemes) if isinstance(schemes, list) else []
        return _push_target(config, where, optional_text(named[0]) if named else None)

    @override
    def decode_pushes(self, result: object) -> Sequence[PushTarget]:
        if not isinstance(result, list):
            raise DecodeError("TaskPushNotificationConfigs", "a list", result)
        return tuple(self.decode_push(item) for item in cast("list[object]", result))

    def _push(self, target: PushTarget) -> JsonDict:
        config = _push(target)
        if target.scheme is not None:
            config["authentication"] = {"schemes": [target.scheme], "credentials": target.credentials}
        return config


class ClientWireV1(ClientWire):
    """A2A 1.0 as a client speaks it."""

    version = "1.0"

    @override
    def message(self, outgoing: OutgoingMessage, *, stream: bool) -> MethodCall:
        parts = [ShapeV1().part(part) for part in outgoing.parts]
        params: JsonDict = {"message": {"role": "ROLE_USER", **_message(outgoing), "parts": parts}}
        if outgoing.push is not None:
            params["configuration"] = {"taskPushNotificationConfig": self._push(outgoing.push)}
        if not stream:
            params["configuration"] = {**params.get("configuration", {}), "returnImmediately": True}
        return MethodCall("SendStreamingMessage" if stream else "SendMessage", params)

    @override
    def get(self, task_id: str, history_length: int | None = None) -> MethodCall:
        return MethodCall("GetTask", _task_params(task_id, history_length))

    @override
    def cancel(self, task_id: str) -> MethodCall:
        return MethodCall("CancelTask", {"id": task_id})

    @override
    def follow(self, task_id: str) -> MethodCall:
        return MethodCall("SubscribeToTask", {"id": task_id})

    @override
    def tasks(self, limit: int, token: str = "") -> MethodCall:
        more = {"pageToken": token} if token else {}
        return MethodCall("ListTasks", {"pageSize": min(max(limit, 1), 100), **more})

    @override
    def set_push(self, task_id: str, target: PushTarget) -> MethodCall:
        return MethodCall("CreateTaskPushNotificationConfig", {"taskId": task_id, **self._push(target)})

    @override
    def get_push(self, task_id: str, push_id: str) -> MethodCall:
        return MethodCall("GetTaskPushNotificationConfig", {"taskId": task_id, "id": push_id})

    @override
    def list_push(self, task_id: str) -> MethodCall:
        return MethodCall("ListTaskPushNotificationConfigs", {"taskId": task_id})

    @override
    def delete_push(self, task_id: str, push_id: str) -> MethodCall:
        return MethodCall("DeleteTaskPushNotificationConfig", {"taskId": task_id, "id": push_id})

    @override
    def decode_item(self, result: object) -> Item:
        return v1_decoder.decode_item(result)

    @override
    def decode_task(self, result: object) -> TaskItem:
        return v1_decoder.decode_task(result)

    @override
    def decode_push(self, result: object) -> PushTarget:
        config = object_of(result, "TaskPushNotificationConfig")
        authentication = optional_object(config.get("authentication")) or {}
        return _push_target(config, "TaskPushNotificationConfig", optional_text(authentication.get("scheme")))

    @override
    def decode_pushes(self, result: object) -> Sequence[PushTarget]:
        listed = object_of(result, "ListTaskPushNotificationConfigsResponse").get("configs")
        return tuple(self.decode_push(item) for item in objects_of(listed))

    def _push(self, target: PushTarget) -> JsonDict:
        config = _push(target)
        if target.scheme is not None:
            config["authentication"] = {"scheme": target.scheme, "credentials": target.credentials or ""}
        return config


_REST: Mapping[str, tuple[str, str]] = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", "/tasks/{id}"),
    "ListTasks": ("GET", "/tasks"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("POST", "/tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": ("POST", "/tasks/{taskId}/pushNotificationConfigs"),
    "GetTaskPushNotificationConfig": ("GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "ListTaskPushNotificationConfigs": ("GET", "/tasks/{taskId}/pushNotificationConfigs"),
    "DeleteTaskPushNotificationConfig": ("DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
}


def has_rest_request(ask: MethodCall) -> bool:
    """Return whether HTTP+JSON has a request; it does not have our own methods."""
    return ask.method in _REST


def rest_request(ask: MethodCall) -> tuple[str, str, JsonDict, JsonDict | None] | None:
    """Return a request as HTTP+JSON of A2A 1.0 has it: verb, path, query and body; None if it does not."""
    found = _REST.get(ask.method)
    if found is None:
        return None
    verb, path = found
    rest = dict(ask.params)
    for name in ("id", "taskId"):
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", quote(str(rest.pop(name, "")), safe=""))
    return (verb, path, {}, rest) if verb == "POST" else (verb, path, rest, None)


def _message(outgoing: OutgoingMessage) -> JsonDict:
    content: JsonDict = {"messageId": outgoing.message_id}
    optional = {"taskId": outgoing.task_id, "contextId": outgoing.context_id, "metadata": outgoing.metadata}
    content.update((name, value) for name, value in optional.items() if value)
    return content


def _task_params(task_id: str, history_length: int | None) -> JsonDict:
    return {"id": task_id} if history_length is None else {"id": task_id, "historyLength": history_length}


def _push(target: PushTarget) -> JsonDict:
    config: JsonDict = {"url": target.url}
    config.update((name, value) for name, value in {"id": target.id, "token": target.token}.items() if value)
    return config


def _push_target(config: Mapping[str, Any], where: str, scheme: str | None) -> PushTarget:
    authentication = optional_object(config.get("authentication")) or {}
    return PushTarget(
        text_field(config, "url", where),
        str(config.get("id") or ""),
        optional_text(config.get("token")),
        scheme,
        optional_text(authentication.get("credentials")),
    )
