"""Conversion of a :class:`~isthmus.models.port.base.Message` to and from JSON, for the journal.

Each part has its kind under ``type``. Data that only the provider understands (``state``, ``raw``) is kept unchanged.
Empty fields are left out. This form is for the journal only: the provider modules have their own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, assert_never, cast

from isthmus.encoding.codec import from_json, to_json
from isthmus.errors import DecodeError
from isthmus.media import Media
from isthmus.models.port.base import (
    Message,
    ModelThought,
    ModelToolResult,
    Opaque,
    Part,
    ProviderState,
    Text,
    ToolRequest,
)

ROLES: Mapping[str, Literal["user", "assistant"]] = {"user": "user", "assistant": "assistant"}


def message_to_json(message: Message) -> dict[str, Any]:
    """Return the JSON object of a message."""
    return {"role": message.role, "parts": [_part_to_json(part) for part in message.parts]}


def message_from_json(value: object) -> Message:
    """Return the message of a JSON object made by :func:`message_to_json`; unknown fields are ignored.

    Raises:
        DecodeError: a field is missing or has another type, or a part's type is not known.
    """
    source = _object(value, "Message")
    role = ROLES.get(_text(source, "role", "Message"))
    if role is None:
        raise DecodeError("Message.role", "user or assistant", source["role"])
    parts = source.get("parts")
    if not isinstance(parts, (list, tuple)):
        raise DecodeError("Message.parts", "a list", parts)
    items = cast("Sequence[object]", parts)
    return Message(role, tuple(_part_from_json(part, f"Message.parts[{index}]") for index, part in enumerate(items)))


def _part_to_json(part: Part) -> dict[str, Any]:
    match part:
        case Text(text, state):
            return {"type": "text", "text": text, **_state_to_json(state)}
        case ModelThought(text, state):
            return {"type": "thought", "text": text, **_state_to_json(state)}
        case ToolRequest(identity, name, arguments, state, invalid):
            encoded: dict[str, Any] = {"type": "tool_request", "id": identity, "name": name, "arguments": arguments}
            if invalid is not None:
                encoded["invalid"] = invalid
            return {**encoded, **_state_to_json(state)}
        case ModelToolResult(identity, name, content, is_error, media):
            encoded = {"type": "tool_result", "id": identity, "name": name, "content": content}
            if is_error:
                encoded["is_error"] = True
            return {**encoded, "media": [to_json(item) for item in media]} if media else encoded
        case Media():
            return {"type": "media", **to_json(part)}
        case Opaque(provider, raw):
            return {"type": "opaque", "provider": provider, "raw": raw}
        case _:
            assert_never(part)


def _part_from_json(value: object, path: str) -> Part:
    source = _object(value, path)
    kind = _text(source, "type", path)
    match kind:
        case "text":
            return Text(_text(source, "text", path), _state_from_json(source, path))
        case "thought":
            return ModelThought(_text(source, "text", path), _state_from_json(source, path))
        case "tool_request":
            return ToolRequest(
                _text(source, "id", path),
                _text(source, "name", path),
                _object(source.get("arguments"), f"{path}.arguments"),
                _state_from_json(source, path),
                _text(source, "invalid", path) if source.get("invalid") is not None else None,
            )
        case "tool_result":
            is_error = source.get("is_error", False)
            if not isinstance(is_error, bool):
                raise DecodeError(f"{path}.is_error", "true or false", is_error)
            return ModelToolResult(
                _text(source, "id", path),
                _text(source, "name", path),
                _text(source, "content", path),
                is_error,
                _media_from_json(source.get("media", ()), f"{path}.media"),
            )
        case "media":
            return from_json(Media, source, path)
        case "opaque":
            return Opaque(_text(source, "provider", path), _object(source.get("raw"), f"{path}.raw"))
        case _:
            raise DecodeError(f"{path}.type", "text, thought, tool_request, tool_result, media or opaque", kind)


def _media_from_json(value: object, path: str) -> tuple[Media, ...]:
    if not isinstance(value, (list, tuple)):
        raise DecodeError(path, "a list", value)
    items = cast("Sequence[object]", value)
    return tuple(from_json(Media, item, f"{path}[{index}]") for index, item in enumerate(items))


def _state_to_json(state: ProviderState | None) -> dict[str, Any]:
    return {} if state is None else {"state": {"provider": state.provider, "data": state.data}}


def _state_from_json(source: Mapping[str, Any], path: str) -> ProviderState | None:
    value = source.get("state")
    if value is None:
        return None
    where = f"{path}.state"
    state = _object(value, where)
    return ProviderState(_text(state, "provider", where), _object(state.get("data"), f"{where}.data"))


def _object(value: object, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DecodeError(path, "an object", value)
    return cast("Mapping[str, Any]", value)


def _text(source: Mapping[str, Any], name: str, path: str) -> str:
    value = source.get(name)
    if not isinstance(value, str):
        raise DecodeError(f"{path}.{name}", "a string", value)
    return value
