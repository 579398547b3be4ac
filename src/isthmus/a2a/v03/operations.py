"""Decoder of requests in A2A 0.3 into operations. Sans-I/O; errors name the invalid field."""

from collections.abc import Mapping
from typing import Any, cast

from typing_extensions import override

from isthmus.a2a.protocol.errors import push_not_supported
from isthmus.a2a.protocol.extension_requests import LIST, SCOPED, decode_commands, extended_object
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
from isthmus.a2a.protocol.parameters import count, excerpt, flag, mapping, optional_mapping, optional_text, text
from isthmus.a2a.wire import Call
from isthmus.client import PushTarget
from isthmus.rpc.messages import METHOD_NOT_FOUND, RpcError

SEND = "message/send"
STREAM = "message/stream"
UNTIL_END = "follow_until_end"
"""Member of the extension's metadata that makes ``tasks/resubscribe`` continue while a task waits for a user."""
_PUSH = "tasks/pushNotificationConfig"
METHODS = (
    SEND,
    STREAM,
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    f"{_PUSH}/set",
    f"{_PUSH}/get",
    f"{_PUSH}/list",
    f"{_PUSH}/delete",
    "agent/getAuthenticatedExtendedCard",
)


class GrammarV03(Grammar):
    """Reader of messages in A2A 0.3."""

    @override
    def check(self, message: Mapping[str, Any], where: str) -> None:
        if message.get("kind", "message") != "message":
            raise InvalidParamsError(f"{where}.kind", 'expected "message"')
        if message.get("role") != "user":
            raise InvalidParamsError(f"{where}.role", 'expected "user"')

    @override
    def part(self, part: Mapping[str, Any], where: str) -> ReadPart:
        match part.get("kind"):
            case "text":
                content = part.get("text")
                if not isinstance(content, str):
                    raise InvalidParamsError(f"{where}.text", "expected a string")
                return ReadPart(f"{where}.text", text=content)
            case "data":
                return ReadPart(f"{where}.data", data=mapping(part, "data", where))
            case "file":
                file, where = mapping(part, "file", where), f"{where}.file"
                kind, name = optional_text(file, "mimeType", where), optional_text(file, "name", where)
                url = optional_text(file, "uri", where)
                if url is not None:
                    return ReadPart(f"{where}.uri", url=url, media_type=kind, filename=name)
                raw = text(file, "bytes", where)
                return ReadPart(f"{where}.bytes", raw=raw, media_type=kind, filename=name)
            case kind:
                message = f'expected "text", "data" or "file", received {excerpt(kind)}'
                raise InvalidParamsError(f"{where}.kind", message)

    @override
    def configuration(self, params: Mapping[str, Any]) -> Configuration:
        configuration, where = optional_mapping(params, "configuration", "params"), "params.configuration"
        if configuration is None:
            return Configuration()
        push = optional_mapping(configuration, "pushNotificationConfig", where)
        return Configuration(
            flag(configuration, "blocking", where) is not False,
            count(configuration, "historyLength", where),
            None if push is None else _target(push, f"{where}.pushNotificationConfig"),
        )


_GRAMMAR = GrammarV03()


def decode_operation(call: Call) -> Operation:
    """Return the operation that a request asks for.

    Raises:
        RpcError: the method is unknown, or a parameter is invalid.
    """
    params = call.params
    match call.method:
        case "message/send" | "message/stream":
            return decode_send(call, _GRAMMAR, stream=call.method == STREAM)
        case "tasks/get":
            return GetTask(text(params, "id", "params"), count(params, "historyLength", "params"))
        case "tasks/cancel":
            return CancelTask(text(params, "id", "params"))
        case "tasks/resubscribe":
            extended = extended_object(params, {}, call.activation) or {}
            return FollowTask(text(params, "id", "params"), call.after, to_end=extended.get(UNTIL_END) is True)
        case "agent/getAuthenticatedExtendedCard":
            return GetExtendedCard()
        case method if method in SCOPED:
            return decode_commands(call)
        case method if method == LIST:
            limit = count(params, "limit", "params")
            return ListTasks() if limit is None else ListTasks(min(max(limit, 1), 1000))
        case method if method.startswith(f"{_PUSH}/"):
            if not call.has_push:
                raise push_not_supported()
            return _push(method.removeprefix(f"{_PUSH}/"), params)
        case method:
            raise _unknown(method)


def _unknown(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, f"unknown method {method[:100]!r}; A2A 0.3 has {', '.join(METHODS)}")


def _push(name: str, params: Mapping[str, Any]) -> Operation:
    match name:
        case "set":
            config = mapping(params, "pushNotificationConfig", "params")
            return SetPush(text(params, "taskId", "params"), _target(config, "params.pushNotificationConfig"))
        case "get":
            push_id = optional_text(params, "pushNotificationConfigId", "params")
            return GetPush(text(params, "id", "params"), push_id)
        case "list":
            return ListPushes(text(params, "id", "params"))
        case "delete":
            return DeletePush(text(params, "id", "params"), text(params, "pushNotificationConfigId", "params"))
        case _:
            raise _unknown(f"{_PUSH}/{name}")


def _target(config: Mapping[str, Any], where: str) -> PushTarget:
    """Return the target in a PushNotificationConfig; of several authentication schemes it has the first."""
    authentication = optional_mapping(config, "authentication", where)
    scheme = credentials = None
    if authentication is not None:
        schemes = authentication.get("schemes")
        listed = cast("list[object]", schemes) if isinstance(schemes, list) else []
        if not listed or not all(isinstance(each, str) and each for each in listed):
            raise InvalidParamsError(f"{where}.authentication.schemes", "expected a list of at least one scheme's name")
        scheme = str(listed[0])
        credentials = optional_text(authentication, "credentials", f"{where}.authentication")
    return PushTarget(
        text(config, "url", where),
        optional_text(config, "id", where) or "",
        optional_text(config, "token", where),
        scheme,
        credentials,
    )
