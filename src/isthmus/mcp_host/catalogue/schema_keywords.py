"""The valid values of the keywords of a JSON schema (draft 2020-12), and the conversion of older drafts.

One provider or another refuses a whole request for one such schema: a keyword of the wrong form, an array without
``items``, an empty ``enum``, or a choice such as ``anyOf`` in place of an object's properties. Pure; handles one
schema, not its sub-schemas.
"""

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

Node: TypeAlias = dict[str, Any]

LARGEST_NUMBER = sys.float_info.max
LONGEST_PATTERN = 1_000
"""Maximum number of characters of a regular expression."""

TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
CHOICES = ("allOf", "anyOf", "oneOf")
_ABOUT_OBJECTS = (*CHOICES, "not", "if", "then", "else", "enum", "const")
"""Keywords that providers refuse beside the properties of the arguments themselves."""


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_truth(value: object) -> bool:
    return isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return whether a value is a number that can be sent to providers: finite, and in the range of a float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_NUMBER


def _is_count(value: object) -> bool:
    return isinstance(value, int) and is_number(value) and value >= 0


def _is_above_zero(value: object) -> bool:
    return is_number(value) and cast("float", value) > 0


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_filled(value: object) -> bool:
    return isinstance(value, list) and bool(cast("list[object]", value))


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _are_schemas(value: object) -> bool:
    return _is_filled(value) and all(isinstance(item, dict) for item in cast("list[object]", value))


def _are_named_schemas(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(item, dict) for item in cast("Mapping[str, object]", value).values()
    )


def _are_names(value: object) -> bool:
    if not isinstance(value, list):
        return False
    items = cast("list[object]", value)
    return all(isinstance(item, str) for item in items) and len(set(map(str, items))) == len(items)


def _are_named_lists(value: object) -> bool:
    return isinstance(value, dict) and all(_are_names(item) for item in cast("Mapping[str, object]", value).values())


def _is_type(value: object) -> bool:
    return value in TYPES if isinstance(value, str) else _are_names(value) and _is_filled(value) and _knows_all(value)


def _knows_all(value: object) -> bool:
    return all(item in TYPES for item in cast("list[object]", value))


def _is_pattern(value: object) -> bool:
    if not isinstance(value, str) or len(value) > LONGEST_PATTERN:
        return False  # Compiling a pattern of megabytes takes minutes.
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


_FORMS: Mapping[str, Callable[[object], bool]] = {
    "type": _is_type,
    **dict.fromkeys(("title", "description", "format", "contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _is_truth),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), is_number),
    "multipleOf": _is_above_zero,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("minContains", "maxContains"), _is_count),
    "pattern": _is_pattern,
    "required": _are_names,
    "dependentRequired": _are_named_lists,
    "examples": _is_list,
    "enum": _is_filled,
    **dict.fromkeys((*CHOICES, "prefixItems"), _are_schemas),
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas"), _are_named_schemas),
    **dict.fromkeys(("items", "contains", "propertyNames", "not", "if", "then", "else"), _is_object),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties", "contentSchema"), _is_object),
}
_REMOVED = frozenset(
    {
        *("$ref", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"),
        *("additionalItems", "dependencies"),
    }
)


def fitting(schema: Node) -> Node:
    """Return the schema without keywords that have an invalid value; forms of older drafts are converted."""
    converted = dict(schema)
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if converted.get(exclusive) is True and is_number(converted.get(limit)):
            converted[exclusive] = converted.pop(limit)
    if isinstance(converted.get("items"), list):
        converted["prefixItems"] = converted.pop("items")
    if isinstance(converted.get("type"), list):
        converted["type"] = list(dict.fromkeys(item for item in converted["type"] if isinstance(item, str)))
    kept = {
        name: value
        for name, value in converted.items()
        if name not in _REMOVED and (name not in _FORMS or _FORMS[name](value))
    }
    kinds = kept.get("type")
    if (kinds == "array" or (isinstance(kinds, list) and "array" in kinds)) and "items" not in kept:
        kept["items"] = {}
    return kept


def as_object(schema: Node) -> Node:
    """Return the schema of arguments as one object, which has the properties of all branches of its choices.

    A property is required if all branches require it; with ``allOf``, if one branch requires it.
    """
    properties: dict[str, Any] = dict(cast("Mapping[str, Any]", schema.get("properties") or {}))
    required: list[str] = list(cast("list[str]", schema.get("required") or []))
    for keyword in CHOICES:
        branches = [as_object(cast("Node", branch)) for branch in schema.get(keyword) or ()]
        demanded = [set(cast("list[str]", branch.get("required") or [])) for branch in branches]
        for branch in branches:
            for name, value in cast("Mapping[str, Any]", branch.get("properties") or {}).items():
                properties[name] = _either(properties[name], value) if name in properties else value
        if demanded:
            common = set[str].union(*demanded) if keyword == "allOf" else set[str].intersection(*demanded)
            required += sorted(common - set(required))
    flat = {name: value for name, value in schema.items() if name not in _ABOUT_OBJECTS}
    if properties or "properties" in schema:
        flat["properties"] = properties
    if required:
        flat["required"] = required
    return flat


def _either(first: object, second: object) -> object:
    if first == second or second == {}:
        return first
    if first == {}:
        return second
    known = cast("Node", first)
    choices = known["anyOf"] if set(known) == {"anyOf"} else [first]
    return first if second in choices else {"anyOf": [*choices, second]}
