"""The shape of the events of two servers, which must be equal for a client of the dialect ``coderAgent``.

For each event: its kinds, state, finality, and the names of all members down to the last, without the values that may
differ between runs or models. Consecutive texts are joined; an update that is sent twice counts once.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from support.coder_agent_client import Line, parts_of

Shape: TypeAlias = dict[str, Any]
_NONE: dict[str, Any] = {}

OPTIONAL = {"traceId", "checkpoint", "userTier", "error", "description", "args"}
"""Members that a server may leave out, or that hold foreign content."""
_LITERAL = {
    "kind",
    "state",
    "final",
    "status",
    "type",
    "append",
    "lastChunk",
    "artifactId",
    "callId",
    "name",
}


def events(lines: Sequence[Line]) -> list[Shape]:
    """Return the shapes of all stream items, in order."""
    found: list[Shape] = []
    for line in lines:
        item = line.get("server")
        if isinstance(item, dict) and "kind" in item:
            shape = _event(cast("dict[str, Any]", item))
            if shape not in found[-1:] or shape["what"] == "state-change":
                found.append(shape)
    return found


def brief(shapes: Sequence[Shape]) -> list[str]:
    """Return the order of kinds: the kind of each event, its call and its state."""
    return [" ".join(part for part in (shape["what"], shape["call"], shape["state"]) if part) for shape in shapes]


def _event(item: dict[str, Any]) -> Shape:
    metadata: dict[str, Any] = item.get("metadata", {})
    what: str = metadata.get("coderAgent", {}).get("kind", item["kind"])
    state: str = item.get("status", {}).get("state", "")
    data: dict[str, Any] = next((part["data"] for part in parts_of(item) if "data" in part), _NONE)
    call = f"{data['request']['callId']} {data['status']}" if "request" in data else ""
    if item["kind"] == "task":
        # Isthmus sends more: the settings in force, and the waiting calls.
        item, call = cast("Shape", {**item, "history": [], "status": {"state": state}}), ""
    return {
        "what": what,
        "call": call,
        "state": state + (" final" if item.get("final") else ""),
        "members": _of("", item),
    }


def _of(key: str, value: Any) -> Any:
    if key == "_agentSettings":
        return "..."
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if key in ("schema", "parameterSchema"):
            return "..."
        return {name: _of(name, item) for name, item in sorted(members.items()) if name not in OPTIONAL}
    if isinstance(value, list):
        return [_of(key, item) for item in cast("list[Any]", value)]
    return value if key in _LITERAL else "..."
