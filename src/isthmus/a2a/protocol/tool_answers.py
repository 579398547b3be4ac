"""Answers to tool calls in a message: the places where clients of the extension put a ToolCallConfirmation. Sans-I/O.

Appendix A of the extension's document has it as the data of a DataPart. Its section 3.2 lets custom objects stand in
metadata under the extension's URI, so it is read there and in data under the URI, too.
"""

from collections.abc import Mapping
from typing import Any, cast

from isthmus.a2a.protocol.extension import URI, envelope
from isthmus.a2a.protocol.jsonrpc import InvalidParamsError
from isthmus.a2a.protocol.parameters import mapping, message_of
from isthmus.development_tool import ToolCallConfirmation
from isthmus.encoding.codec import camel

_MEMBERS = ("tool_call_id", "selected_option_id")
_ONEOF = "modified_details"


def answer_in(data: object, where: str, *, of_task: bool) -> ToolCallConfirmation | None:
    """Return the answer that the data of a part is, or has under the extension's URI; None if it is something else.

    An incomplete answer that is sent to a task (``of_task``) counts as an answer, too: as a message it would close the
    question.

    Raises:
        InvalidParamsError: an answer is incomplete, or a member has the wrong type.
    """
    if not isinstance(data, Mapping):
        return None
    source = cast("Mapping[str, Any]", data)
    if not _is_answer(source, of_task=of_task):
        keyed = envelope(source, URI)
        if keyed is None or not _is_answer(keyed, of_task=of_task):
            return None
        source, where = keyed, f'{where}["{URI}"]'
    return _answer(source, where)


def answer_in_metadata(extended: Mapping[str, Any] | None, where: str) -> ToolCallConfirmation | None:
    """Return the answer that the extension's object in metadata is; None if it is something else.

    Raises:
        InvalidParamsError: an answer is incomplete, or a member has the wrong type.
    """
    return None if extended is None or not _is_answer(extended, of_task=True) else _answer(extended, where)


def has_answer(params: Mapping[str, Any]) -> bool:
    """Return whether a part of a request's message is an answer, in any protocol version."""
    message = params.get("message")
    parts = cast("Mapping[str, Any]", message).get("parts") if isinstance(message, Mapping) else None
    for part in cast("list[Any]", parts) if isinstance(parts, list) else ():
        data = cast("Mapping[str, Any]", part).get("data") if isinstance(part, Mapping) else None
        if isinstance(data, Mapping):
            source = cast("Mapping[str, Any]", data)
            if any(_is_answer(each, of_task=False) for each in (source, envelope(source, URI)) if each is not None):
                return True
    return False


def _is_answer(data: Mapping[str, Any], *, of_task: bool) -> bool:
    present = [name in data or camel(name) in data for name in _MEMBERS]
    return all(present) or (of_task and any(present))


def _answer(data: Mapping[str, Any], where: str) -> ToolCallConfirmation:
    """Return a ToolCallConfirmation; the members of its oneof may also be nested under the oneof's name."""
    for name in (_ONEOF, camel(_ONEOF)):
        if data.get(name) is not None:
            details = mapping(data, name, where)
            if not details.keys() & {"file_details", camel("file_details")}:
                raise InvalidParamsError(f"{where}.{name}", "expected file_details, the only kind that is supported")
            data = {**data, **details}
    return message_of(ToolCallConfirmation, data, where)
