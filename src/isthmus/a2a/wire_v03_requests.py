"""A2A 0.3 over JSON-RPC, requests: parameters into operations (server), and the parameters a client sends.

Sans-I/O. Errors name the field that does not fit. What other versions and dialects do differently stands in modules
beside this one; what the server answers is in :mod:`isthmus.a2a.wire_v03_encoder`.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, cast

from isthmus.a2a.extension import Activation, envelope
from isthmus.a2a.json_text import encode
from isthmus.a2a.jsonrpc import (
    CONTENT_TYPE_NOT_SUPPORTED,
    METHOD_NOT_FOUND,
    NO_EXTENDED_CARD,
    PUSH_NOT_SUPPORTED,
    InvalidParamsError,
    Request,
    RpcError,
)
from isthmus.a2a.operations import CancelTask, FollowTask, GetTask, ListTasks, Operation, SendMessage
from isthmus.client import PromptMessage
from isthmus.codec import camel, from_json, to_json
from isthmus.errors import DecodeError
from isthmus.events import AgentSettings, JsonObject, ToolCallConfirmation

SEND = "message/send"
STREAM = "message/stream"
GET = "tasks/get"
CANCEL = "tasks/cancel"
RESUBSCRIBE = "tasks/resubscribe"
LIST = "isthmus/tasks"
"""Our own method, since 0.3 has none: ``{"limit": 100}`` -> ``{"tasks": [Task, ...]}``, most recently changed first,
without history."""

METHODS = (SEND, STREAM, GET, CANCEL, RESUBSCRIBE, LIST)

_ANSWERED_BY_LIMIT = 80


def metadata_of(params: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The metadata objects of a request, the message's own first; what is no object is left out here."""
    found = (_member(params.get("message"), "metadata"), params.get("metadata"))
    return tuple(cast("Mapping[str, Any]", item) for item in found if isinstance(item, Mapping))


def decode_operation(request: Request, activation: Activation, after: int | None = None) -> Operation:
    """The operation that a request asks for; ``after`` is the last event id that the client has seen.

    Raises:
        RpcError: an unknown method, or parameters that do not fit; nothing has happened then.
    """
    params = request.params
    match request.method:
        case "message/send" | "message/stream":
            return _decode_send(params, activation, stream=request.method == STREAM)
        case "tasks/get":
            return GetTask(_text(params, "id", "params"), _count(params, "historyLength", "params"))
        case "tasks/cancel":
            return CancelTask(_text(params, "id", "params"))
        case "tasks/resubscribe":
            return FollowTask(_text(params, "id", "params"), after)
        case "isthmus/tasks":
            limit = _count(params, "limit", "params")
            return ListTasks() if limit is None else ListTasks(min(max(limit, 1), 1000))
        case "agent/getAuthenticatedExtendedCard":
            raise RpcError(NO_EXTENDED_CARD, "this server has no extended agent card; the public one says everything")
        case method if method.startswith("tasks/pushNotificationConfig/"):
            raise RpcError(PUSH_NOT_SUPPORTED, "this server sends no push notifications")
        case method:
            raise RpcError(METHOD_NOT_FOUND, f"unknown method {method!r}; A2A 0.3 has {', '.join(METHODS[:-1])}")


def encode_prompt(message: PromptMessage, uri: str | None) -> dict[str, Any]:
    """The parameters with which a client sends a prompt."""
    content = _message(message.message_id, [{"kind": "text", "text": message.text}], message.task_id)
    if message.context_id is not None:
        content["contextId"] = message.context_id
    if uri is not None and message.settings is not None:
        content["metadata"] = {uri: dict(message.settings)}
    return {"message": content}


def encode_answers(
    message_id: str,
    task_id: str,
    context_id: str | None,
    confirmations: Sequence[ToolCallConfirmation],
    answered_by: str,
    uri: str | None,
) -> dict[str, Any]:
    """The parameters with which a client answers questions of a task."""
    parts = [{"kind": "data", "data": to_json(confirmation)} for confirmation in confirmations]
    content = _message(message_id, parts, task_id)
    if context_id is not None:
        content["contextId"] = context_id
    if uri is not None:
        content["metadata"] = {uri: {"answered_by": answered_by}}
    return {"message": content}


def _message(message_id: str, parts: list[dict[str, Any]], task_id: str | None) -> dict[str, Any]:
    content: dict[str, Any] = {"kind": "message", "role": "user", "messageId": message_id, "parts": parts}
    if task_id is not None:
        content["taskId"] = task_id
    return content


def _decode_send(params: Mapping[str, Any], activation: Activation, *, stream: bool) -> SendMessage:
    message = _mapping(params, "message", "params")
    where = "params.message"
    if message.get("kind", "message") != "message":
        raise InvalidParamsError(f"{where}.kind", 'expected "message"')
    if message.get("role") != "user":
        raise InvalidParamsError(f"{where}.role", 'expected "user"')
    message_id = _text(message, "messageId", where)
    task_id = _optional_text(message, "taskId", where)
    context_id = _optional_text(message, "contextId", where)
    blocking, history_length = _configuration(params)
    text, confirmations = _parts(message)
    if confirmations and text:
        raise InvalidParamsError(f"{where}.parts", "expected either answers (tool_call_id) or content, not both")
    if confirmations and task_id is None:
        raise InvalidParamsError(f"{where}.taskId", "expected the task whose question is answered")
    if not confirmations and not text.strip():
        raise InvalidParamsError(f"{where}.parts", "expected text, or answers to the task's questions")
    extended = _extended(params, message, activation)
    settings = None if confirmations else _settings(extended, activation, task_id is None and context_id is None)
    answered_by = extended.get("answered_by") if extended is not None else None
    return SendMessage(
        message_id=message_id,
        text=text,
        confirmations=confirmations,
        task_id=task_id,
        context_id=context_id,
        settings=settings,
        stream=stream,
        blocking=blocking,
        history_length=history_length,
        answered_by=_label(answered_by),
    )


def _label(value: object) -> str | None:
    """A short name that a client gives itself: it is shown to people, so nothing in it moves their cursor."""
    if not isinstance(value, str):
        return None
    return "".join(character for character in value if character.isprintable()).strip()[:_ANSWERED_BY_LIMIT] or None


def _configuration(params: Mapping[str, Any]) -> tuple[bool, int | None]:
    where = "params.configuration"
    if params.get("configuration") is None:
        return True, None
    configuration = _mapping(params, "configuration", "params")
    blocking = configuration.get("blocking")
    if blocking is not None and not isinstance(blocking, bool):
        raise InvalidParamsError(f"{where}.blocking", "expected true or false")
    if configuration.get("pushNotificationConfig") is not None:
        raise RpcError(PUSH_NOT_SUPPORTED, "params.configuration: this server sends no push notifications")
    return blocking is not False, _count(configuration, "historyLength", where)


def _extended(
    params: Mapping[str, Any], message: Mapping[str, Any], activation: Activation
) -> Mapping[str, Any] | None:
    for holder, where in ((message, "params.message"), (params, "params")):
        if holder.get("metadata") is None:
            continue
        metadata = _mapping(holder, "metadata", where)
        if activation.uri is None:
            continue
        if activation.uri in metadata and not isinstance(metadata[activation.uri], Mapping):
            raise InvalidParamsError(f'{where}.metadata["{activation.uri}"]', "expected an object")
        found = envelope(metadata, activation.uri)
        if found is not None:
            return found
    return None


def _settings(extended: Mapping[str, Any] | None, activation: Activation, is_first: bool) -> JsonObject | None:
    if activation.uri is None:
        return None
    where = f'params.message.metadata["{activation.uri}"]'
    if extended is None:
        if is_first:
            raise InvalidParamsError(
                where, "expected AgentSettings with workspace_path, which the first message of a session must have"
            )
        return None
    settings = {_SETTINGS_NAMES.get(key, key): value for key, value in extended.items()}
    if "workspace_path" not in settings and not is_first:
        return None
    try:
        path = from_json(AgentSettings, settings, where).workspace_path
    except DecodeError as error:
        raise InvalidParamsError(error.path, f"expected {error.expected}, an absolute path") from error
    if not PurePath(path).is_absolute() or "\0" in path:
        raise InvalidParamsError(f"{where}.workspace_path", f"expected an absolute path, received {path[:200]!r}")
    return settings


_SETTINGS_NAMES = {camel("workspace_path"): "workspace_path"}


def _parts(message: Mapping[str, Any]) -> tuple[str, tuple[ToolCallConfirmation, ...]]:
    parts = message.get("parts")
    if not isinstance(parts, list) or not parts:
        raise InvalidParamsError("params.message.parts", "expected a list of at least one part")
    texts: list[str] = []
    confirmations: list[ToolCallConfirmation] = []
    for index, part in enumerate(cast("list[Any]", parts)):
        where = f"params.message.parts[{index}]"
        if not isinstance(part, Mapping):
            raise InvalidParamsError(where, "expected an object")
        found = _part(cast("Mapping[str, Any]", part), where, of_task=message.get("taskId") is not None)
        if isinstance(found, ToolCallConfirmation):
            confirmations.append(found)
        else:
            texts.append(found)
    return "\n\n".join(texts), tuple(confirmations)


def _part(part: Mapping[str, Any], where: str, *, of_task: bool) -> str | ToolCallConfirmation:
    match part.get("kind"):
        case "text":
            text = part.get("text")
            if not isinstance(text, str):
                raise InvalidParamsError(f"{where}.text", "expected a string")
            return text
        case "data":
            data = _mapping(part, "data", where)
            if _is_answer(data, of_task=of_task):
                return _answer(data, f"{where}.data")
            return f"```json\n{encode(data).decode()}\n```"
        case "file":
            return _file(_mapping(part, "file", where), f"{where}.file")
        case kind:
            raise InvalidParamsError(f"{where}.kind", f'expected "text", "data" or "file", received {kind!r:.80}')


def _is_answer(data: Mapping[str, Any], *, of_task: bool) -> bool:
    """Half an answer to a task is meant as one: taken for a message, it would close the question."""
    names = ("tool_call_id", "selected_option_id")
    present = [name in data or camel(name) in data for name in names]
    return all(present) or (of_task and any(present))


def _answer(data: Mapping[str, Any], where: str) -> ToolCallConfirmation:
    """A ToolCallConfirmation; the members of its oneof may also stand in an object with the oneof's name."""
    for name in (_ONEOF, camel(_ONEOF)):
        if data.get(name) is not None:
            data = {**data, **_mapping(data, name, where)}
    try:
        return from_json(ToolCallConfirmation, data, where)
    except DecodeError as error:
        raise InvalidParamsError(error.path, f"expected {error.expected}") from error


_ONEOF = "modified_details"


def _file(file: Mapping[str, Any], where: str) -> str:
    name = _optional_text(file, "name", where) or "attachment"
    kind = _optional_text(file, "mimeType", where)
    uri = _optional_text(file, "uri", where)
    if uri is not None:
        return f"Attached: {name} ({kind or 'file'}) at {uri}"
    try:
        content = base64.b64decode(_text(file, "bytes", where), validate=True)
    except binascii.Error as error:
        raise InvalidParamsError(f"{where}.bytes", "expected base64") from error
    try:
        return f"Attached: {name}\n```\n{content.decode()}\n```"
    except UnicodeDecodeError as error:
        message = f"{where}: this agent reads text files only, and {name} ({kind or 'no mimeType'}) is none"
        raise RpcError(CONTENT_TYPE_NOT_SUPPORTED, message) from error


def _member(value: object, name: str) -> object:
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None


def _mapping(source: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    value = source.get(name)
    if not isinstance(value, Mapping):
        raise InvalidParamsError(f"{where}.{name}", "expected an object")
    return cast("Mapping[str, Any]", value)


def _text(source: Mapping[str, Any], name: str, where: str) -> str:
    value = source.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidParamsError(f"{where}.{name}", "expected a string that is not empty")
    return value


def _optional_text(source: Mapping[str, Any], name: str, where: str) -> str | None:
    return None if source.get(name) is None else _text(source, name, where)


def _count(source: Mapping[str, Any], name: str, where: str) -> int | None:
    value = source.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidParamsError(f"{where}.{name}", "expected a whole number, 0 or more")
    return value
