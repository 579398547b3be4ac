"""Conversion of a server's JSON schema into two usable forms. Pure; the given schema is not changed.

The usable form suits every model provider (Gemini CLI calls this "Schema Processing"): ``$schema``,
``additionalProperties`` and ``default`` beside ``anyOf`` are removed, local ``$ref``s are replaced by their targets,
and loops and levels that are nested too deeply are cut.

The full form is for providers that accept JSON Schema: ``$schema``, ``additionalProperties``, ``$defs`` and the
references to them stay. In this form too, a reference that leads back to its own value is cut, so that no reader
loops. No reference leads out of the schema.

A property that is named like a keyword stays. A schema that cannot be made usable is refused with the reason.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from isthmus.errors import IsthmusError
from isthmus.mcp_host.catalogue.schema_keywords import CHOICES, as_object, fitting, is_number
from isthmus.mcp_host.results.result import clean

MAXIMUM_DEPTH = 24
MAXIMUM_NODES = 20_000
"""Maximum number of sub-schemas and values in one schema, after ``$ref``s are replaced."""
MAXIMUM_NODES_OF_ALL = 200_000
"""Maximum number of sub-schemas and values in the schemas of all tools of a server."""

_DROPPED = frozenset({"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "additionalProperties"})
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The only value of ``$schema`` that stays; schemas of other drafts are converted to this draft."""
_DEFINITIONS = ("$defs", "definitions")
"""Keywords that contain definitions; older drafts use the second one."""
_DEFINED = re.compile(r"#/(\$defs|definitions)/([A-Za-z0-9_.-]{1,64})")
_SAME_VALUE = frozenset({*CHOICES, "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas apply to the same value as the schema around them."""
_DATA = frozenset({"default", "const", "enum", "examples", "example", "required", "dependentRequired"})
"""Keywords whose value is data, not a schema."""
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords whose value maps names to schemas."""

_PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

JsonSchema = Mapping[str, Any]


class UnusableSchemaError(IsthmusError):
    """A schema that no provider would accept; the message gives the reason."""


class Nodes:
    """Budget of nodes for the schemas of one server."""

    def __init__(self, left: int = MAXIMUM_NODES_OF_ALL) -> None:
        self._left = left

    def take(self) -> None:
        """Count one node.

        Raises:
            UnusableSchemaError: the budget is spent.
        """
        if self._left <= 0:
            raise UnusableSchemaError(f"its server's schemas have more than {MAXIMUM_NODES_OF_ALL:,} parts together")
        self._left -= 1


def usable_schema(schema: object, nodes: Nodes | None = None) -> dict[str, Any]:
    """Return a tool's input schema in the form that every provider accepts: of type object, without references.

    ``nodes`` is the budget for all schemas of the server.

    Raises:
        UnusableSchemaError: it is not an object schema, or far too large.
    """
    if not isinstance(schema, Mapping):
        raise UnusableSchemaError(f"its input schema is {type(schema).__name__}, not an object")
    return _arguments(_Cleaner(cast("JsonSchema", schema), nodes or Nodes()))


def full_schema(schema: object, nodes: Nodes | None = None) -> dict[str, Any]:
    """Return a tool's input schema as JSON Schema 2020-12, with its definitions.

    `usable_schema` must accept the schema. A remaining reference leads to ``#`` or into ``$defs``, and applies to a
    part of the value, so that it cannot loop. ``nodes`` is the budget for all schemas of the server.

    Raises:
        UnusableSchemaError: it is not an object schema, or far too large.
    """
    if not isinstance(schema, Mapping):
        raise UnusableSchemaError(f"its input schema is {type(schema).__name__}, not an object")
    cleaner = _Cleaner(cast("JsonSchema", schema), nodes or Nodes(), is_full=True)
    found, definitions = _arguments(cleaner), cleaner.definitions()
    dialect = cast("JsonSchema", schema).get("$schema")
    if isinstance(dialect, str) and dialect.rstrip("#") == _DIALECT:
        found = {"$schema": _DIALECT, **found}
    return {**found, "$defs": definitions} if definitions else found


def _arguments(cleaner: "_Cleaner") -> dict[str, Any]:
    cleaned = cleaner.clean_whole()
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
    """Return a usable schema without the parameters with names that some provider refuses, and these names.

    Raises:
        UnusableSchemaError: one of them is required.
    """
    refused = tuple(name for name in schema["properties"] if not _PROPERTY_NAME.fullmatch(name))
    for name in refused:
        if name in schema.get("required", ()):
            raise UnusableSchemaError(
                f"it requires the parameter {name[:80]!r}, a name that not every provider accepts"
            )
    kept = {name: value for name, value in schema["properties"].items() if name not in refused}
    return {**schema, "properties": kept}, refused


class _Cleaner:
    """Cleaner of one schema. ``is_full``: definitions, references to them and ``additionalProperties`` stay."""

    def __init__(self, root: JsonSchema, all_nodes: Nodes, *, is_full: bool = False) -> None:
        self._root = root
        self._nodes = 0
        self._all_nodes = all_nodes
        self._is_full = is_full

    def clean_whole(self) -> dict[str, Any]:
        cleaned = self._schema(self._root, 0, (), is_same=True)
        return cast("dict[str, Any]", cleaned) if isinstance(cleaned, dict) else {}

    def definitions(self) -> dict[str, Any]:
        """Return the definitions that a reference may lead to, by name."""
        found: dict[str, Any] = {}
        for keyword in _DEFINITIONS:
            named = self._root.get(keyword)
            for name, schema in cast("Mapping[str, object]", named if isinstance(named, Mapping) else {}).items():
                reference = f"#/{keyword}/{name}"
                if self._kept(reference) is not None and name not in found:
                    found[name] = self._schema(schema, 1, (reference,), is_same=True)
        return found

    def _kept(self, reference: str) -> str | None:
        """Return a reference in the full form; None if it must be replaced by its target."""
        if not self._is_full or reference == "#":
            return reference if self._is_full else None
        if (match := _DEFINED.fullmatch(reference)) is None:
            return None
        keyword, name = match.groups()
        first = next((key for key in _DEFINITIONS if self._has(key, name)), None)
        return f"#/$defs/{name}" if keyword == first else None

    def _has(self, keyword: str, name: str) -> bool:
        named = self._root.get(keyword)
        return isinstance(named, Mapping) and isinstance(cast("JsonSchema", named).get(name), Mapping | bool)

    def _count(self) -> None:
        self._nodes += 1
        self._all_nodes.take()
        if self._nodes > MAXIMUM_NODES:
            raise UnusableSchemaError(f"its input schema has more than {MAXIMUM_NODES} parts")

    def _schema(self, schema: object, depth: int, followed: tuple[str, ...], *, is_same: bool = False) -> object:
        """Return a cleaned schema; `followed` are the references that led to it.

        ``is_same``: the schema applies to the same value as the whole schema or the enclosing definition. A reference
        in it could lead back to that value, so it is replaced by its target.
        """
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
            if not is_same and (kept := self._kept(reference)) is not None:
                return self._referring(kept, given, depth, followed)
            return self._resolved(reference, given, depth, followed, is_same=is_same)
        cleaned: dict[str, Any] = {}
        for keyword, value in given.items():
            if keyword == "additionalProperties" and self._is_full and isinstance(value, Mapping | bool):
                inner = cast("JsonSchema | bool", value)
                cleaned[keyword] = inner if isinstance(inner, bool) else self._schema(inner, depth + 1, followed)
                continue
            if keyword in _DROPPED or keyword == "$ref":
                continue
            if keyword == "default" and "anyOf" in given:
                continue
            is_inner_same = is_same and keyword in _SAME_VALUE
            cleaned[keyword] = self._value(keyword, value, depth, followed, is_same=is_inner_same)
            if keyword in ("title", "description") and isinstance(value, str):
                cleaned[keyword] = clean(value)
        # Callers check the root, which has to meet more conditions, and refuse it with the reason.
        return fitting(cleaned) if depth else cleaned

    def _value(self, keyword: str, value: object, depth: int, followed: tuple[str, ...], *, is_same: bool) -> object:
        if keyword in _DATA:
            return self._data(value, depth)
        if keyword in _NAMED and isinstance(value, Mapping):
            named = cast("Mapping[str, object]", value)
            return {name: self._schema(item, depth + 1, followed, is_same=is_same) for name, item in named.items()}
        if isinstance(value, Mapping):
            return self._schema(cast("JsonSchema", value), depth + 1, followed, is_same=is_same)
        if isinstance(value, list):
            items = cast("list[object]", value)
            return [
                self._schema(cast("JsonSchema", item), depth + 1, followed, is_same=is_same)
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

    def _referring(self, kept: str, given: JsonSchema, depth: int, followed: tuple[str, ...]) -> object:
        """Return a remaining reference with its sibling keywords."""
        beside = _beside(given)
        around = self._schema(beside, max(depth, 1), followed)
        more = cast("dict[str, Any]", around) if isinstance(around, dict) else {}
        if "items" not in beside:
            more.pop("items", None)  # a default from `fitting`, which would override the definition's
        return {"$ref": kept, **more}

    def _resolved(
        self, reference: str, given: JsonSchema, depth: int, followed: tuple[str, ...], *, is_same: bool
    ) -> object:
        """Return the target of a reference with its sibling keywords; a loop or a missing target allows anything."""
        beside = _beside(given)
        target = None if reference in followed else self._target(reference)
        if target is None:
            return self._schema(_stub(beside), depth, followed)
        found = self._schema(target, depth + 1, (*followed, reference), is_same=is_same)
        around = self._schema(beside, max(depth, 1), followed, is_same=is_same)
        more = cast("dict[str, Any]", around) if isinstance(around, dict) else {}
        if "items" not in beside:
            more.pop("items", None)  # a default from `fitting`, which would override the target's
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


def _beside(schema: JsonSchema) -> dict[str, Any]:
    return {keyword: value for keyword, value in schema.items() if keyword not in ("$ref", "$dynamicRef")}


def _sendable(value: object) -> object:
    """Return a value; None for a number that JSON cannot express, which would break every request of a session."""
    return None if isinstance(value, int | float) and not isinstance(value, bool) and not is_number(value) else value


def _stub(schema: JsonSchema) -> dict[str, Any]:
    """Return the type, title and description of a schema, the only keywords that stay at too deep a level."""
    return {
        keyword: schema[keyword] for keyword in ("type", "title", "description") if isinstance(schema.get(keyword), str)
    }
