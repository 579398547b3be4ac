"""The official schemas of the Agent Client Protocol, by version, as the judges of what our side sends.

The schema allows unknown members, so that a misspelled one would pass: their names are checked as well.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from isthmus.encoding.json_schema import draft_2020_12

UNSTABLE = "1.unstable"
"""Name of the schema of version 1 with what may still change in it, for the few messages that use that."""
_UNSTABLE_RESULTS = frozenset({"initialize", "session/prompt", "session/fork"})
"""Methods with results that have members which may still change: ``fork`` and ``usage``."""
_FREE = frozenset({"_meta", "rawInput", "rawOutput", "requestedSchema", "data"})
"""Members whose values have any names inside."""


@cache
def _definitions(version: int | str) -> dict[str, Any]:
    number, _, kind = str(version).partition(".")
    name = f"schema.{kind}.json" if kind else "schema.json"
    return json.loads((Path(__file__).parent / f"acp_v{number}" / name).read_text(encoding="utf-8"))["$defs"]


@cache
def definition_of(method: str, kind: str, version: int | str = 1) -> str:
    """Return the name of the definition of a method's ``Request``, ``Response`` or ``Notification``."""
    found = _definitions(version).items()
    names = [name for name, body in found if body.get("x-method") == method and name.endswith(kind)]
    assert len(names) == 1, f"the schema has {names} for {kind} of {method}"
    return names[0]


@cache
def _validator(name: str, version: int | str) -> Any:
    return draft_2020_12()({"$ref": f"#/$defs/{name}", "$defs": _definitions(version)})


def check(name: str, value: object, version: int | str = 1) -> None:
    """Fail unless a value fits a definition of the schema, and has only members that the schema knows."""
    validator = _validator(name, version)
    problems = [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(value)]
    assert problems == [], f"{name}: {problems}"
    unknown = sorted(set(_names(value)) - _known_names(version))
    assert unknown == [], f"{name}: members that the schema does not have: {unknown}"


def check_update(update: Mapping[str, Any], version: int | str = 1) -> None:
    """Fail unless a value is an update of a session."""
    name = definition_of("session/update", "Notification", version)
    check(name, {"sessionId": "s", "update": update}, version)


def check_message(message: Mapping[str, Any], answers: str = "", version: int | str = 1) -> None:
    """Fail unless a message of an agent fits the schema; a result is that of the method ``answers``."""
    assert message["jsonrpc"] == "2.0"
    match message:
        case {"method": "$/cancel_request", "params": params, **rest}:
            assert rest.keys() == {"jsonrpc"}
            check("CancelRequestNotification", params, version)
        case {"method": str(method), "params": params, **rest}:
            assert rest.keys() in ({"jsonrpc"}, {"jsonrpc", "id"})
            check(definition_of(method, "Request" if "id" in message else "Notification", version), params, version)
        case {"id": _, "result": result, **rest}:
            assert rest.keys() == {"jsonrpc"}
            version = UNSTABLE if version == 1 and answers in _UNSTABLE_RESULTS else version
            check(definition_of(answers, "Response", version), result, version)
        case {"id": _, "error": error, **rest}:
            assert rest.keys() == {"jsonrpc"}
            check("Error", error, version)
        case _:
            raise AssertionError(f"not a message: {message}")


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield name
            if name not in _FREE:
                yield from _names(inner)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _names(item)


@cache
def _known_names(version: int | str) -> frozenset[str]:
    return frozenset(_properties(_definitions(version)))


def _properties(schema: Any) -> Iterator[str]:
    """Yield the names of all members in a part of the schema."""
    if isinstance(schema, dict):
        for name, inner in cast("dict[str, Any]", schema).items():
            if name == "properties":
                yield from inner
            if name == "discriminator":
                yield inner["propertyName"]
            yield from _properties(inner)
    elif isinstance(schema, list):
        for item in cast("list[Any]", schema):
            yield from _properties(item)
