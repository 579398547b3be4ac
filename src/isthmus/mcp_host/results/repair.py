"""Repairs or drops what does not fit in a server's results, so that one bad entry never costs the others.

Works on decoded JSON before the SDK checks it, and says what it dropped. Pure, but for the check of one entry, which
is given (`Fits`). Deliberately not here: JSON Schema as providers want it (:mod:`isthmus.mcp_host.catalogue.schema`).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

OUTPUT_SCHEMA = "isthmus/outputSchema"
"""Key in a tool's ``_meta`` for its output schema."""
JsonObject: TypeAlias = dict[str, Any]
MAXIMUM_ENTRIES = 5_000
"""Maximum number of entries read from one page of a listing."""
MAXIMUM_BLOCKS = 10_000
"""Maximum number of blocks read from one result."""
MAXIMUM_MENDED = 200
"""Blocks of one result of which it is said what they were; of more it is said how many are left out."""
_BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link"})
Fits: TypeAlias = Callable[[str, JsonObject], str | None]
"""Returns why the result of a method does not fit the protocol, or None when it does."""

_LISTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tools/list": ("tools", ("name", "inputSchema")),
    "prompts/list": ("prompts", ("name",)),
    "resources/list": ("resources", ("uri", "name")),
    "resources/templates/list": ("resourceTemplates", ("uriTemplate", "name")),
}
_WORTH_KEEPING = ("title", "description", "annotations", "arguments", "mimeType", "size")


@dataclass(frozen=True, slots=True)
class Repaired:
    """A result that fits, and a sentence on each entry that was dropped."""

    result: JsonObject
    dropped: tuple[str, ...] = ()


def repair(method: str, result: JsonObject, fits: Fits) -> Repaired:
    """Return the result of `method` without what does not fit; results of unknown methods stay as they are."""
    if method in _LISTS:
        return _repair_list(method, result, fits)
    if result.get("resultType") == "input_required":
        return Repaired(result)  # No result yet, but what the server wants to know first.
    if method == "tools/call":
        return Repaired(_repair_call(result, fits))
    return Repaired(result)


def _repair_list(method: str, result: JsonObject, fits: Fits) -> Repaired:
    key, required = _LISTS[method]
    entries: object = result.get(key)
    kept: list[JsonObject] = []
    dropped: list[str] = []
    if not isinstance(entries, list):
        dropped.append(f"{key}: expected a list, received {type(entries).__name__}")
        entries = []
    listed = cast("list[object]", entries)
    if len(listed) > MAXIMUM_ENTRIES:
        dropped.append(f"{len(listed) - MAXIMUM_ENTRIES:,} more {key}: only the first {MAXIMUM_ENTRIES:,} are taken")
    for index, entry in enumerate(listed[:MAXIMUM_ENTRIES]):
        found = _repair_entry(method, key, required, entry, fits)
        if isinstance(found, str):
            dropped.append(f"{_name_of(entry) or f'{key}[{index}]'}: {found}")
        else:
            kept.append(found)
    cleaned: JsonObject = {**result, key: kept}
    if not isinstance(result.get("nextCursor"), str):
        cleaned.pop("nextCursor", None)
    if fits(method, cleaned) is not None:
        cleaned = {name: cleaned[name] for name in (key, "nextCursor") if name in cleaned}
    return Repaired(cleaned, tuple(dropped))


def _repair_entry(method: str, key: str, required: tuple[str, ...], entry: object, fits: Fits) -> JsonObject | str:
    """Return the entry as it can be taken, or why it cannot."""
    if not isinstance(entry, dict):
        return f"expected an object, received {type(entry).__name__}"
    found = dict(cast("JsonObject", entry))
    if key == "tools":
        # Where the SDK does not see it: for the SDK a result that does not fit is a failure.
        output_schema: object = found.pop("outputSchema", None)
        meta: object = found.get("_meta", {})
        if isinstance(output_schema, dict) and isinstance(meta, dict):
            found["_meta"] = {**cast("JsonObject", meta), OUTPUT_SCHEMA: output_schema}
        found["inputSchema"] = _repair_input_schema(found.get("inputSchema"))
    if key.startswith("resource") and not isinstance(found.get("name"), str):
        found["name"] = str(found.get("uri") or found.get("uriTemplate") or "")
    if fits(method, {key: [found]}) is None:
        return found
    essential: JsonObject = {name: found[name] for name in required if name in found}
    problem = fits(method, {key: [essential]})
    if problem is not None:
        return problem
    for name in _WORTH_KEEPING:
        if name in found and fits(method, {key: [{**essential, name: found[name]}]}) is None:
            essential[name] = found[name]
    return essential


def _repair_input_schema(schema: object) -> object:
    if schema is None:
        return {"type": "object", "properties": {}}
    if not isinstance(schema, dict):
        return schema
    repaired = dict(cast("JsonObject", schema))
    if repaired.get("properties") == []:
        repaired["properties"] = {}  # what PHP makes of an empty object
    if repaired.get("required") is None:
        repaired.pop("required", None)
    if repaired.get("type") is None or (isinstance(repaired["type"], list) and "object" in repaired["type"]):
        repaired["type"] = "object"
    return repaired


def _repair_call(result: JsonObject, fits: Fits) -> JsonObject:
    content: object = result.get("content")
    blocks = cast("list[object]", content) if isinstance(content, list) else [] if content is None else [content]
    if len(blocks) > MAXIMUM_BLOCKS:
        told = _text(f"[{len(blocks) - MAXIMUM_BLOCKS:,} more blocks are left out]")
        blocks = [*blocks[:MAXIMUM_BLOCKS], told]
        result = {**result, "content": blocks}
    if fits("tools/call", result) is None:
        return result
    cleaned: JsonObject = {"content": _repair_blocks(blocks, fits)}
    structured: object = result.get("structuredContent")
    if isinstance(structured, dict):
        cleaned["structuredContent"] = structured
    elif structured is not None:
        cleaned["content"].append({"type": "text", "text": _as_text(structured)})
    if result.get("isError"):
        cleaned["isError"] = True
    return cleaned


def _repair_blocks(blocks: Sequence[object], fits: Fits) -> list[JsonObject]:
    """Return the blocks in their order. Each check costs, so that what is well is not checked alone."""
    found: list[JsonObject] = []
    mended = 0
    for block in blocks:
        if isinstance(block, str):
            found.append(_text(block))
        elif _is_plain_text(block):
            found.append(cast("JsonObject", block))
        elif mended < MAXIMUM_MENDED:
            is_well = _may_fit(block) and fits("tools/call", {"content": [block]}) is None
            mended += 0 if is_well else 1
            found.append(cast("JsonObject", block) if is_well else _described(block))
        else:
            mended += 1
    if mended > MAXIMUM_MENDED:
        found.append(_text(f"[{mended - MAXIMUM_MENDED:,} more blocks are left out: too many of them do not fit MCP]"))
    return found


def _is_plain_text(block: object) -> bool:
    return (
        isinstance(block, dict)
        and len(found := cast("JsonObject", block)) == 2
        and found.get("type") == "text"
        and isinstance(found.get("text"), str)
    )


def _may_fit(block: object) -> bool:
    kind: object = cast("JsonObject", block).get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and kind in _BLOCKS


def _described(block: object) -> JsonObject:
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
