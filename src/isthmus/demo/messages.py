"""Messages of the program's debug log as a user reads them: a few lines each, long texts cut. Pure."""

import json
from collections.abc import Mapping
from typing import Any, cast

from isthmus.rpc.wire_log import WireMessage

WIDTH = 150
MAXIMUM_TEXT = 48
"""Maximum number of characters that are shown of a text inside a message."""
MAXIMUM_LINES = 4
"""Maximum number of lines that are shown of a body."""


def body_of(message: WireMessage) -> Any:
    """Return the body of a message: its JSON value, its text if it is not JSON, None if it is empty."""
    try:
        return json.loads(message.body) if message.body else None
    except ValueError:
        return message.body


def lines_of(message: WireMessage) -> list[str]:
    """Return a message in a few lines of at most :data:`WIDTH` characters."""
    body = body_of(message)
    value = _object(body)
    label = f"{message.head}  {value.get('method') or _event_name(value)}".rstrip()
    head = f"{message.link:<4} {message.arrow} {label}"
    essence = _essence(body)
    return [head] if essence is None or essence == [] else [head, *(f"        {line}" for line in _wrapped(essence))]


def _event_name(value: Mapping[str, Any]) -> str:
    """Return a name for a result of A2A: its kind, the kind of the extension, a tool's status, the task's state."""
    result = _object(value.get("result"))
    status = _object(result.get("status"))
    extension = next((_object(item).get("kind") for item in _object(result.get("metadata")).values()), None)
    parts: list[object] = _object(status.get("message")).get("parts") or [None]
    call = _object(_object(parts[0]).get("data"))
    about = f"{call['tool_name']} {call['status']}" if "tool_name" in call and "status" in call else ""
    final = "final" if result.get("final") else ""
    return " ".join(str(word) for word in (result.get("kind"), extension, about, status.get("state"), final) if word)


def _essence(body: Any) -> Any:
    """Return the part of a body that says most: params, error, the message of an event, or else the body itself."""
    value = _object(body)
    if not {"params", "error", "result", "method"} & value.keys():
        return body
    for name in ("params", "error"):
        if name in value:
            return value[name]
    result = _object(value.get("result"))
    status = _object(result.get("status"))
    return _object(status.get("message")).get("parts", status) if status else value.get("result")


def _wrapped(value: Any) -> list[str]:
    text = json.dumps(_cut(value), ensure_ascii=False, separators=(", ", ": "))
    width = WIDTH - 8
    lines = [text[start : start + width] for start in range(0, len(text), width)]
    return lines if len(lines) <= MAXIMUM_LINES else [*lines[: MAXIMUM_LINES - 1], lines[MAXIMUM_LINES - 1][:-2] + " …"]


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAXIMUM_TEXT else f"{value[:MAXIMUM_TEXT]}… ({len(value)} characters)"
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {
            name if len(name) <= MAXIMUM_TEXT else "…/" + name.rsplit("/", 2)[-2]: _cut(item) for name, item in items
        }
    if isinstance(value, list):
        return [_cut(item) for item in cast("list[Any]", value)]
    return value


def _object(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
