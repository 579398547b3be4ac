"""Decoder of requests in A2A 1.0 into operations. Sans-I/O; errors name the invalid field.

Names are read in both spellings of ProtoJSON: lowerCamelCase, and as in the .proto file. :mod:`isthmus.a2a.server.rest`
has already turned a REST request into a method with parameters.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from typing_extensions import override

from isthmus.a2a.protocol.errors import push_not_supported
from isthmus.a2a.protocol.extension_requests import LIST, SCOPED, decode_commands
from isthmus.a2a.protocol.jsonrpc import InvalidParamsError
from isthmus.a2a.protocol.message_decoder import Configuration, Grammar, ReadPart, decode_send
from isthmus.a2a.protocol.operations import (
    CancelTask,
    DeletePush,
    FollowTask,
    GetExtendedCard,
    GetPush,
    GetTask,
    ListPushes,
    ListTasks,
    Operation,
    SetPush,
)
from isthmus.a2a.protocol.parameters import count, excerpt, flag, optional_mapping, optional_text, proto_names, text
from isthmus.a2a.protocol.vocabulary import FOREIGN_STATES, V03_STATES, V1_STATES
from isthmus.a2a.wire import Call
from isthmus.client import PushTarget
from isthmus.events import TaskState
from isthmus.rpc.messages import METHOD_NOT_FOUND, RpcError

SEND = "SendMessage"
STREAM = "SendStreamingMessage"
METHODS = (
    SEND,
    STREAM,
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
)
PAGE_SIZE = 50
PAGE_LIMIT = 100

_ROLE_USER = ("ROLE_USER", 1)
_CONTENTS = ("text", "data", "raw", "url")


class GrammarV1(Grammar):
    """Reader of messages in A2A 1.0."""

    @override
    def check(self, message: Mapping[str, Any], where: str) -> None:
        if message.get("role") not in _ROLE_USER:
            raise InvalidParamsError(f"{where}.role", 'expected "ROLE_USER"')

    @override
    def part(self, part: Mapping[str, Any], where: str) -> ReadPart:
        part = proto_names(part)
        # ProtoJSON may write null for a member that is not set; for data null is a value.
        present = [name for name in _CONTENTS if part.get(name) is not None] or [
            name for name in part if name == "data"
        ]
        if len(present) != 1:
            raise InvalidParamsError(where, f"expected one of {', '.join(_CONTENTS)}, received {excerpt(sorted(part))}")
        (name,) = present
        kind, filename = _string(part, "mediaType", where), _string(part, "filename", where)
        where = f"{where}.{name}"
        value = part[name]
        if name == "data":
            return ReadPart(where, data=value, media_type=kind, filename=filename)
        if not isinstance(value, str):
            raise InvalidParamsError(where, "expected a string")
        if name == "text":
            return ReadPart(where, text=value, media_type=kind, filename=filename)
        if name == "url":
            return ReadPart(where, url=value, media_type=kind, filename=filename)
        return ReadPart(where, raw=value, media_type=kind, filename=filename)

    @override
    def configuration(self, params: Mapping[str, Any]) -> Configuration:
        found, where = optional_mapping(params, "configuration", "params"), "params.configuration"
        if found is None:
            return Configuration()
        configuration = proto_names(found)
        push = optional_mapping(configuration, "taskPushNotificationConfig", where)
        return Configuration(
            flag(configuration, "returnImmediately", where) is not True,
            count(configuration, "historyLength", where),
            None if push is None else _target(proto_names(push), f"{where}.taskPushNotificationConfig"),
        )


_GRAMMAR = GrammarV1()


def decode_operation(call: Call) -> Operation:
    """Return the operation that a request asks for.

    Raises:
        RpcError: the method is unknown, or a parameter is invalid.
    """
    if call.method in SCOPED:
        return decode_commands(call)
    params = proto_names(call.params)
    match call.method:
        case "SendMessage" | "SendStreamingMessage":
            message = params.get("message")
            if isinstance(message, Mapping):
                params["message"] = proto_names(cast("Mapping[str, Any]", message))
            return decode_send(replace(call, params=params), _GRAMMAR, stream=call.method == STREAM)
        case "GetTask":
            return GetTask(text(params, "id", "params"), count(params, "historyLength", "params"))
        case "CancelTask":
            return CancelTask(text(params, "id", "params"))
        case "SubscribeToTask":
            return FollowTask(text(params, "id", "params"), call.after, only_live=True, to_end=True)
        case "ListTasks":
            return _list(params)
        case "GetExtendedAgentCard":
            return GetExtendedCard()
        case method if method == LIST:
            limit = count(params, "limit", "params")
            return ListTasks() if limit is None else ListTasks(min(max(limit, 1), 1000))
        case method if method.endswith(("PushNotificationConfig", "PushNotificationConfigs")) and method in METHODS:
            if not call.has_push:
                raise push_not_supported()
            return _push(method, params)
        case method:
            raise RpcError(METHOD_NOT_FOUND, f"unknown method {method[:100]!r}; A2A 1.0 has {', '.join(METHODS)}")


def _push(method: str, params: Mapping[str, Any]) -> Operation:
    task_id = text(params, "taskId", "params")
    match method:
        case "CreateTaskPushNotificationConfig":
            return SetPush(task_id, _target(params, "params"))
        case "GetTaskPushNotificationConfig":
            return GetPush(task_id, text(params, "id", "params"))
        case "ListTaskPushNotificationConfigs":
            return ListPushes(task_id)
        case _:
            return DeletePush(task_id, text(params, "id", "params"))


def _list(params: Mapping[str, Any]) -> ListTasks:
    size = count(params, "pageSize", "params")
    if size is not None and not 1 <= size <= PAGE_LIMIT:
        raise InvalidParamsError("params.pageSize", f"expected a whole number from 1 to {PAGE_LIMIT}, received {size}")
    return ListTasks(
        PAGE_SIZE if size is None else size,
        _string(params, "contextId", "params"),
        _state(params.get("status")),
        _time(params.get("statusTimestampAfter")),
        _string(params, "pageToken", "params"),
        count(params, "historyLength", "params"),
        flag(params, "includeArtifacts", "params") is True,
    )


def _state(value: object) -> TaskState | None:
    """Return the state to filter by; None for no filter."""
    names = list(V03_STATES)
    name = names[value] if isinstance(value, int) and 0 <= value < len(names) else value
    if name in (None, "", "TASK_STATE_UNSPECIFIED"):
        return None
    # The examples of queries in the document of 1.0 have the names of 0.3.
    found = V03_STATES.get(V1_STATES.get(name, name)) if isinstance(name, str) else None
    if found is None:
        raise InvalidParamsError("params.status", f"expected one of {', '.join(names)}, received {excerpt(value)}")
    return FOREIGN_STATES.get(found) or TaskState(found)


def _time(value: object) -> float | None:
    if value in (None, ""):
        return None
    try:
        moment = datetime.fromisoformat(value if isinstance(value, str) else "?")
    except ValueError as error:
        message = f"expected a time such as 2023-10-27T10:00:00Z, received {excerpt(value)}"
        raise InvalidParamsError("params.statusTimestampAfter", message) from error
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _target(config: Mapping[str, Any], where: str) -> PushTarget:
    authentication = optional_mapping(config, "authentication", where)
    scheme = credentials = None
    if authentication is not None:
        scheme = text(authentication, "scheme", f"{where}.authentication")
        credentials = _string(authentication, "credentials", f"{where}.authentication")
    push_id, token = _string(config, "id", where) or "", _string(config, "token", where)
    return PushTarget(text(config, "url", where), push_id, token, scheme, credentials)


def _string(source: Mapping[str, Any], name: str, where: str) -> str | None:
    """Return a string; None for an empty one, which ProtoJSON does not distinguish from a missing one."""
    return None if source.get(name) == "" else optional_text(source, name, where)
