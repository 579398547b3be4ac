"""Decoder for a user's message in a request: text with attachments, answers to questions, or both. Sans-I/O.

It is the same for every version; a :class:`Grammar` reads the version's own roles, parts and configuration. Errors name
the invalid field.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Protocol, cast

from isthmus.a2a.protocol.extension_requests import answered_by_of, extended_object, settings_of
from isthmus.a2a.protocol.items import data_part
from isthmus.a2a.protocol.jsonrpc import InvalidParamsError
from isthmus.a2a.protocol.operations import POLLED, SendMessage
from isthmus.a2a.protocol.parameters import mapping, optional_id, optional_mapping, text
from isthmus.a2a.protocol.tool_answers import answer_in, answer_in_metadata
from isthmus.a2a.wire import Call
from isthmus.client import PushTarget
from isthmus.development_tool import ToolCallConfirmation
from isthmus.encoding.json_text import encode
from isthmus.events import ArtifactPart, MessagePart
from isthmus.record import record

MAXIMUM_PARTS = 10_000
"""Maximum number of parts of one message."""


@record
class ReadPart:
    """A part that a grammar has read; exactly one of ``text``, ``data``, ``raw`` (base64) and ``url`` is set.

    ``where`` is the path of that value in the request.
    """

    where: str
    text: str | None = None
    data: object = None
    raw: str | None = None
    url: str | None = None
    media_type: str | None = None
    filename: str | None = None


@record
class Configuration:
    """Options that a client sends with a message: how to answer it, and where to push updates."""

    blocking: bool = True
    history_length: int | None = None
    push: PushTarget | None = None


class Grammar(Protocol):
    """Reader of the parts of a message in one protocol version. Every method raises RpcError for an invalid value."""

    def check(self, message: Mapping[str, Any], where: str) -> None:
        """Check that the object is a message, and from the user."""
        ...

    def part(self, part: Mapping[str, Any], where: str) -> ReadPart:
        """Return a part of the message."""
        ...

    def configuration(self, params: Mapping[str, Any]) -> Configuration:
        """Return the configuration in the parameters of a request."""
        ...


def decode_send(call: Call, grammar: Grammar, *, stream: bool) -> SendMessage:
    """Return the message in the parameters of a request.

    Raises:
        RpcError: a parameter is invalid.
    """
    params, activation = call.params, call.activation
    message = mapping(params, "message", "params")
    where = "params.message"
    grammar.check(message, where)
    text(message, "messageId", where)  # required, and not empty
    message_id = optional_id(message, "messageId", where) or ""
    task_id = optional_id(message, "taskId", where)
    context_id = optional_id(message, "contextId", where)
    configuration = grammar.configuration(params)
    content, confirmations, parts = _parts(message, grammar)
    metadata = optional_mapping(message, "metadata", where)
    extended = extended_object(params, message, activation)
    answer = answer_in_metadata(extended, f'params.message.metadata["{activation.uri}"]')
    if answer is not None and all(answer.tool_call_id != each.tool_call_id for each in confirmations):
        # A message must have a part, so an answer in metadata stands beside a text that only labels it.
        content, confirmations = "", (*confirmations, answer)
    if confirmations and task_id is None:
        raise InvalidParamsError(f"{where}.taskId", "expected the task whose question is answered")
    if not confirmations and not content.strip():
        raise InvalidParamsError(f"{where}.parts", "expected content, or answers to the task's questions")
    is_first = task_id is None and context_id is None and call.needs_workspace
    settings = None if confirmations else settings_of(extended, activation, is_first)
    if task_id is None and not activation.active and not stream and not configuration.blocking:
        settings = {POLLED: True}
    return SendMessage(
        message_id=message_id,
        text=content,
        confirmations=confirmations,
        task_id=task_id,
        context_id=context_id,
        settings=settings,
        stream=stream,
        blocking=configuration.blocking,
        history_length=configuration.history_length,
        answered_by=answered_by_of(extended),
        push=configuration.push,
        may_continue_completed=activation.active,
        requires_settings=activation.active and call.needs_workspace,
        answers_in_text=not (activation.active and activation.is_stated),
        parts=() if not content or (len(parts) == 1 and parts[0] == ArtifactPart(text=content)) else parts,
        metadata=metadata or None,
        extension=activation.uri or "",
    )


def _parts(
    message: Mapping[str, Any], grammar: Grammar
) -> tuple[str, tuple[ToolCallConfirmation, ...], tuple[MessagePart, ...]]:
    parts = message.get("parts")
    if not isinstance(parts, list) or not parts:
        raise InvalidParamsError("params.message.parts", "expected a list of at least one part")
    if len(cast("list[Any]", parts)) > MAXIMUM_PARTS:
        raise InvalidParamsError("params.message.parts", f"expected at most {MAXIMUM_PARTS} parts")
    texts: list[str] = []
    confirmations: list[ToolCallConfirmation] = []
    content: list[MessagePart] = []
    for index, part in enumerate(cast("list[Any]", parts)):
        where = f"params.message.parts[{index}]"
        if not isinstance(part, Mapping):
            raise InvalidParamsError(where, "expected an object")
        read = grammar.part(cast("Mapping[str, Any]", part), where)
        found = _content(read, of_task=message.get("taskId") is not None)
        if isinstance(found, ToolCallConfirmation):
            confirmations.append(found)
        else:
            texts.append(found)
            content.append(_message_part(read))
    return "\n\n".join(texts), tuple(confirmations), tuple(content)


def _message_part(part: ReadPart) -> MessagePart:
    if part.text is not None or part.raw is not None or part.url is not None:
        return ArtifactPart(part.text, None, part.raw, part.url, part.media_type, part.filename)
    return data_part(part.data, part.media_type, part.filename)


def _content(part: ReadPart, *, of_task: bool) -> str | ToolCallConfirmation:
    if part.text is not None:
        return part.text
    if part.raw is not None or part.url is not None:
        return _file(part)
    answer = answer_in(part.data, part.where, of_task=of_task)
    return answer if answer is not None else f"```json\n{encode(part.data).decode()}\n```"


def _file(part: ReadPart) -> str:
    name, kind = part.filename or "attachment", part.media_type
    if part.url is not None:
        return f"Attached: {name} ({kind or 'file'}) at {part.url}"
    try:
        content = base64.b64decode(part.raw or "", validate=True)
    except binascii.Error as error:
        raise InvalidParamsError(part.where, "expected base64") from error
    try:
        return f"Attached: {name}\n```\n{content.decode()}\n```"
    except UnicodeDecodeError:
        return f"Attached: {name} ({kind or 'of unknown type'}, {len(content)} bytes)"
