"""Shows captured frames to a user: protocol by protocol, a line or two each, long texts cut. Pure."""

import json
from collections.abc import Mapping
from typing import Any, cast

from isthmus.demo.relay import Frame

WIDTH = 150
LONG_TEXT = 48
"""Characters of a text inside a frame that are shown."""


def lines_of(frame: Frame) -> list[str]:
    """Return the frame in at most a few lines of :data:`WIDTH` characters."""
    arrow = "->" if frame.kind == "request" else "<-"
    label = _label(frame)
    essence = None if frame.body is None else _essence(frame)
    body = "" if essence is None or essence == [] else _compact(essence)
    head = f"{frame.link:<4} {arrow} {label}"
    if not body:
        return [head]
    return [head, *(f"        {line}" for line in _wrapped(body))]


def _label(frame: Frame) -> str:
    value = _object(frame.body)
    method = value.get("method")
    if frame.kind == "request":
        return f"{frame.head}  {method}" if isinstance(method, str) else frame.head
    if frame.kind == "event":
        number = f"id {frame.event_id}" if frame.event_id else "no id"
        return f"event {number}  {method or _event_name(value)}".rstrip()
    return frame.head


def _event_name(value: Mapping[str, Any]) -> str:
    result = _object(value.get("result"))
    kind = result.get("kind", "")
    state = _object(result.get("status")).get("state", "")
    extension = next((_object(item).get("kind") for item in _object(result.get("metadata")).values()), None)
    final = "final" if result.get("final") else ""
    parts: list[object] = _object(_object(result.get("status")).get("message")).get("parts") or [None]
    call = _object(_object(parts[0]).get("data"))
    about = f"{call['tool_name']} {call['status']}" if "tool_name" in call and "status" in call else ""
    return " ".join(str(word) for word in (kind, extension, about, state, final) if word)


def _essence(frame: Frame) -> Any:
    """Return the params of a request, the message of an event, or the whole frame if it is not JSON-RPC."""
    value = _object(frame.body)
    if not {"params", "error", "result", "method"} & value.keys():
        return frame.body
    for name in ("params", "error"):
        if name in value:
            return value[name]
    result = value.get("result")
    status = _object(_object(result).get("status"))
    message = _object(status.get("message"))
    return message.get("parts", _object(result).get("status", result)) if status else result


def _compact(value: Any) -> str:
    return json.dumps(_cut(value), ensure_ascii=False, separators=(", ", ": "))


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONG_TEXT else f"{value[:LONG_TEXT]}… ({len(value)} characters)"
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {name if len(name) <= LONG_TEXT else "…/" + name.rsplit("/", 2)[-2]: _cut(item) for name, item in items}
    if isinstance(value, list):
        return [_cut(item) for item in cast("list[Any]", value)]
    return value


def _wrapped(text: str, lines: int = 4) -> list[str]:
    width = WIDTH - 8
    parts = [text[start : start + width] for start in range(0, len(text), width)]
    return parts if len(parts) <= lines else [*parts[: lines - 1], parts[lines - 1][: width - 2] + " …"]


def _object(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
