"""Makes a server's JSON schema usable for every model provider (spec 4, "Schema Processing").

``$schema`` and ``additionalProperties`` go, ``default`` beside ``anyOf`` goes, local ``$ref``s are put in place with
loops cut, and what is too deep is cut. Pure; the given schema is not changed. A property that happens to be named like
a keyword stays. What cannot be made usable is refused with a reason.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from isthmus.errors import IsthmusError
from isthmus.mcp_host.result import clean
from isthmus.mcp_host.schema_keywords import as_object, fitting, is_number

MAXIMUM_DEPTH = 24
MAXIMUM_NODES = 20_000
"""Sub-schemas and values of one schema, after ``$ref``s are put in place."""
MAXIMUM_NODES_OF_ALL = 200_000
"""The same of all tools of a server."""

_DROPPED = frozenset({"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "additionalProperties"})
_DATA = frozenset({"default", "const", "enum", "examples", "example", "required", "dependentRequired"})
"""Keywords whose value is data, not a schema."""
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords whose value maps names to schemas."""

_PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

JsonSchema = Mapping[str, Any]


class UnusableSchemaError(IsthmusError):
    """No provider can be given this schema; the text says why."""


class Nodes:
    """How many nodes the schemas of one server may still have."""

    def __init__(self, left: int = MAXIMUM_NODES_OF_ALL) -> None:
        self._left = left

    def take(self) -> None:
        """Count one.

        Raises:
            UnusableSchemaError: there are none left.
        """
        if self._left <= 0:
            raise UnusableSchemaError(f"its server's schemas have more than {MAXIMUM_NODES_OF_ALL:,} parts together")
        self._left -= 1


def usable_schema(schema: object, nodes: Nodes | None = None) -> dict[str, Any]:
    """A tool's input schema as providers take it: of type object, without references.

    ``nodes`` are those that the server's schemas may have together.

    Raises:
        UnusableSchemaError: it is not an object schema, or far too large.
    """
    if not isinstance(schema, Mapping):
        raise UnusableSchemaError(f"its input schema is {type(schema).__name__}, not an object")
    cleaned = _Cleaner(cast("JsonSchema", schema), nodes or Nodes()).clean_whole()
    kind = cleaned.get("type")
    if isinstance(kind, list) and "object" in kind:
        kind = "object"
    if kind is None:
        kind = "object"
    if kind != "object":
        raise UnusableSchemaError(f"its input schema is of type {kind!r}; arguments are an object")
    properties = cleaned.get("properties")
    if properties is None or properties == []:
        properties = {}
    if not isinstance(properties, dict):
        raise UnusableSchemaError(f"the properties of its input schema are {type(properties).__name__}, not an object")
    required = cleaned.get("required")
    demanded = cast("list[object]", required) if isinstance(required, list) else []
    named = list(dict.fromkeys(name for name in demanded if isinstance(name, str)))
    known = cast("dict[str, Any]", properties)
    whole: dict[str, Any] = {**cleaned, "type": "object", "properties": known, "required": named}
    result = as_object(fitting(whole))
    result["required"] = [name for name in result.get("required", ()) if name in result["properties"]]
    if not result["required"]:
        del result["required"]
    return result


def without_refused_names(schema: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A usable schema without the parameters whose names some provider refuses, and these names.

    Raises:
        UnusableSchemaError: one of them is required.
    """
    refused = tuple(name for name in schema["properties"] if not _PROPERTY_NAME.fullmatch(name))
    for name in refused:
        if name in schema.get("required", ()):
            raise UnusableSchemaError(f"it requires the parameter {name[:80]!r}, a name that not every provider takes")
    kept = {name: value for name, value in schema["properties"].items() if name not in refused}
    return {**schema, "properties": kept}, refused


class _Cleaner:
    def __init__(self, root: JsonSchema, all_nodes: Nodes) -> None:
        self._root = root
        self._nodes = 0
        self._all_nodes = all_nodes

    def clean_whole(self) -> dict[str, Any]:
        cleaned = self._schema(self._root, 0, ())
        return cast("dict[str, Any]", cleaned) if isinstance(cleaned, dict) else {}

    def _count(self) -> None:
        self._nodes += 1
        self._all_nodes.take()
        if self._nodes > MAXIMUM_NODES:
            raise UnusableSchemaError(f"its input schema has more than {MAXIMUM_NODES} parts")

    def _schema(self, schema: object, depth: int, followed: tuple[str, ...]) -> object:
        """A cleaned schema; `followed` are the references that led here."""
        self._count()
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        if not isinstance(schema, Mapping):
            return {}
        if depth > MAXIMUM_DEPTH:
            return _stub(cast("JsonSchema", schema))
        given = cast("JsonSchema", schema)
        reference = given.get("$ref", given.get("$dynamicRef"))
        if isinstance(reference, str):
            return self._resolved(reference, given, depth, followed)
        cleaned: dict[str, Any] = {}
        for keyword, value in given.items():
            if keyword in _DROPPED or keyword == "$ref":
                continue
            if keyword == "default" and "anyOf" in given:
                continue
            cleaned[keyword] = self._value(keyword, value, depth, followed)
            if keyword in ("title", "description") and isinstance(value, str):
                cleaned[keyword] = clean(value)
        # The root is held to more, with reasons, by whoever asked.
        return fitting(cleaned) if depth else cleaned

    def _value(self, keyword: str, value: object, depth: int, followed: tuple[str, ...]) -> object:
        if keyword in _DATA:
            return self._data(value, depth)
        if keyword in _NAMED and isinstance(value, Mapping):
            named = cast("Mapping[str, object]", value)
            return {name: self._schema(item, depth + 1, followed) for name, item in named.items()}
        if isinstance(value, Mapping):
            return self._schema(cast("JsonSchema", value), depth + 1, followed)
        if isinstance(value, list):
            items = cast("list[object]", value)
            return [
                self._schema(cast("JsonSchema", item), depth + 1, followed)
                if isinstance(item, Mapping)
                else self._data(item, depth + 1)
                for item in items
            ]
        return _sendable(value)

    def _data(self, value: object, depth: int) -> object:
        self._count()
        if depth > MAXIMUM_DEPTH:
            return None
        if isinstance(value, Mapping):
            return {key: self._data(item, depth + 1) for key, item in cast("Mapping[str, object]", value).items()}
        if isinstance(value, list):
            return [self._data(item, depth + 1) for item in cast("list[object]", value)]
        return _sendable(value)

    def _resolved(self, reference: str, given: JsonSchema, depth: int, followed: tuple[str, ...]) -> object:
        """What a reference stands for, with what is written beside it; a loop or a lost reference allows anything."""
        beside = {keyword: value for keyword, value in given.items() if keyword not in ("$ref", "$dynamicRef")}
        target = None if reference in followed else self._target(reference)
        if target is None:
            return self._schema(_stub(beside), depth, followed)
        found = self._schema(target, depth + 1, (*followed, reference))
        around = self._schema(beside, max(depth, 1), followed)
        more = cast("dict[str, Any]", around) if isinstance(around, dict) else {}
        if "items" not in beside:
            more.pop("items", None)  # The target's count, not what arrays get by default.
        return fitting({**cast("dict[str, Any]", found), **more}) if isinstance(found, dict) else more

    def _target(self, reference: str) -> object:
        if reference == "#":
            return self._root
        if not reference.startswith("#/"):
            return None
        found: object = self._root
        for part in reference[2:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping):
                found = cast("Mapping[str, object]", found).get(name)
            elif isinstance(found, list) and name.isdigit() and int(name) < len(cast("list[object]", found)):
                found = cast("list[object]", found)[int(name)]
            else:
                return None
        return found


def _sendable(value: object) -> object:
    """A plain value; None for a number that JSON does not have, which would break all requests of a session."""
    return None if isinstance(value, int | float) and not isinstance(value, bool) and not is_number(value) else value


def _stub(schema: JsonSchema) -> dict[str, Any]:
    """What is left of a schema whose inside is cut: its type and description."""
    return {
        keyword: schema[keyword] for keyword in ("type", "title", "description") if isinstance(schema.get(keyword), str)
    }
