"""Repair of a server's results: invalid parts are repaired or dropped, so that one of them does not break the others.

Works on decoded JSON before the SDK checks it, and reports the dropped parts. Pure: callers pass the function that
checks an entry (`Check`). Not here: the repair of schemas, see :mod:`isthmus.mcp_host.catalogue.schema`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from isthmus.record import record

OUTPUT_SCHEMA = "isthmus/outputSchema"
"""Key in a tool's ``_meta`` for its output schema."""
JsonObject: TypeAlias = dict[str, Any]
MAXIMUM_ENTRIES = 5_000
"""Maximum number of entries read from one page of a listing."""
MAXIMUM_BLOCKS = 10_000
"""Maximum number of blocks read from one result."""
MAXIMUM_DESCRIBED = 200
"""Maximum number of invalid blocks of one result that are described; further ones are only counted."""
_BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link"})
Check: TypeAlias = Callable[[str, JsonObject], str | None]
"""Function that returns why the result of a method is not valid MCP; None if it is valid."""

_LISTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tools/list": ("tools", ("name", "inputSchema")),
    "prompts/list": ("prompts", ("name",)),
    "resources/list": ("resources", ("uri", "name")),
    "resources/templates/list": ("resourceTemplates", ("uriTemplate", "name")),
}
_OPTIONAL = ("title", "description", "annotations", "arguments", "mimeType", "size")


@record
class Repaired:
    """A valid MCP result. ``dropped`` has a message about each entry that is left out."""

    result: JsonObject
    dropped: tuple[str, ...] = ()


def repair(method: str, result: JsonObject, check: Check) -> Repaired:
    """Return the repaired result of `method`; results of unknown methods are unchanged."""
    if method in _LISTS:
        return _repair_list(method, result, check)
    if result.get("resultType") == "input_required":
        return Repaired(result)  # not a result yet: the server asks for input first
    if method == "tools/call":
        return Repaired(_repair_call(result, check))
    return Repaired(result)


def _repair_list(method: str, result: JsonObject, check: Check) -> Repaired:
    key, required = _LISTS[method]
    entries: object = result.get(key)
    kept: list[JsonObject] = []
    dropped: list[str] = []
    if not isinstance(entries, list):
        dropped.append(f"{key}: expected a list, received {type(entries).__name__}")
        entries = []
    listed = cast("list[object]", entries)
    if len(listed) > MAXIMUM_ENTRIES:
        dropped.append(f"{len(listed) - MAXIMUM_ENTRIES:,} more {key}: only the first {MAXIMUM_ENTRIES:,} are used")
    for index, entry in enumerate(listed[:MAXIMUM_ENTRIES]):
        found = _repair_entry(method, key, required, entry, check)
        if isinstance(found, str):
            dropped.append(f"{_name_of(entry) or f'{key}[{index}]'}: {found}")
        else:
            kept.append(found)
    cleaned: JsonObject = {**result, key: kept}
    if not isinstance(result.get("nextCursor"), str):
        cleaned.pop("nextCursor", None)
    if check(method, cleaned) is not None:
        cleaned = {name: cleaned[name] for name in (key, "nextCursor") if name in cleaned}
    return Repaired(cleaned, tuple(dropped))


def _repair_entry(method: str, key: str, required: tuple[str, ...], entry: object, check: Check) -> JsonObject | str:
    """Return the repaired entry, or the reason why it has to be dropped."""
    if not isinstance(entry, dict):
        return f"expected an object, received {type(entry).__name__}"
    found = dict(cast("JsonObject", entry))
    if key == "tools":
        # Hide it from the SDK, which fails a call if the result does not match the schema.
        output_schema: object = found.pop("outputSchema", None)
        meta: object = found.get("_meta", {})
        if isinstance(output_schema, dict) and isinstance(meta, dict):
            found["_meta"] = {**cast("JsonObject", meta), OUTPUT_SCHEMA: output_schema}
        found["inputSchema"] = _repair_input_schema(found.get("inputSchema"))
    if key.startswith("resource") and not isinstance(found.get("name"), str):
        found["name"] = str(found.get("uri") or found.get("uriTemplate") or "")
    if check(method, {key: [found]}) is None:
        return found
    essential: JsonObject = {name: found[name] for name in required if name in found}
    problem = check(method, {key: [essential]})
    if problem is not None:
        return problem
    for name in _OPTIONAL:
        if name in found and check(method, {key: [{**essential, name: found[name]}]}) is None:
            essential[name] = found[name]
    return essential


def _repair_input_schema(schema: object) -> object:
    if schema is None:
        return {"type": "object", "properties": {}}
    if not isinstance(schema, dict):
        return schema
    repaired = dict(cast("JsonObject", schema))
    if repaired.get("properties") == []:
        repaired["properties"] = {}  # PHP encodes an empty object like this
    if repaired.get("required") is None:
        repaired.pop("required", None)
    if repaired.get("type") is None or (isinstance(repaired["type"], list) and "object" in repaired["type"]):
        repaired["type"] = "object"
    return repaired


def _repair_call(result: JsonObject, check: Check) -> JsonObject:
    content: object = result.get("content")
    blocks = cast("list[object]", content) if isinstance(content, list) else [] if content is None else [content]
    if len(blocks) > MAXIMUM_BLOCKS:
        note = _text(f"[{len(blocks) - MAXIMUM_BLOCKS:,} more blocks are left out]")
        blocks = [*blocks[:MAXIMUM_BLOCKS], note]
        result = {**result, "content": blocks}
    if check("tools/call", result) is None:
        return result
    cleaned: JsonObject = {"content": _repair_blocks(blocks, check)}
    structured: object = result.get("structuredContent")
    if isinstance(structured, dict):
        cleaned["structuredContent"] = structured
    elif structured is not None:
        cleaned["content"].append({"type": "text", "text": _as_text(structured)})
    if result.get("isError"):
        cleaned["isError"] = True
    return cleaned


def _repair_blocks(blocks: Sequence[object], check: Check) -> list[JsonObject]:
    """Return the repaired blocks in order. Text blocks, the most common, are not checked, to save time."""
    found: list[JsonObject] = []
    invalid = 0
    for block in blocks:
        if isinstance(block, str):
            found.append(_text(block))
        elif _is_plain_text(block):
            found.append(cast("JsonObject", block))
        elif invalid < MAXIMUM_DESCRIBED:
            is_valid = _has_known_type(block) and check("tools/call", {"content": [block]}) is None
            invalid += 0 if is_valid else 1
            found.append(cast("JsonObject", block) if is_valid else _describe(block))
        else:
            invalid += 1
    if invalid > MAXIMUM_DESCRIBED:
        found.append(
            _text(f"[{invalid - MAXIMUM_DESCRIBED:,} more blocks are left out: too many of them do not fit MCP]")
        )
    return found


def _is_plain_text(block: object) -> bool:
    return (
        isinstance(block, dict)
        and len(found := cast("JsonObject", block)) == 2
        and found.get("type") == "text"
        and isinstance(found.get("text"), str)
    )


def _has_known_type(block: object) -> bool:
    kind: object = cast("JsonObject", block).get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and kind in _BLOCKS


def _describe(block: object) -> JsonObject:
    kind = cast("JsonObject", block).get("type") if isinstance(block, dict) else type(block).__name__
    shown = _as_text(cast("object", block))
    return _text(f"[content of the type {kind!r}, which MCP does not have: {shown}]")


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _as_text(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 10_000 else f"{text[:10_000]}... ({len(text)} characters)"


def _name_of(entry: object) -> str:
    if not isinstance(entry, dict):
        return ""
    found = cast("JsonObject", entry)
    name = found.get("name") or found.get("uri") or found.get("uriTemplate")
    return name[:80] if isinstance(name, str) else ""
