"""Readers for the parameters of requests: each checks the type of a value, or raises -32602 with the field's path."""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from isthmus.a2a.protocol.jsonrpc import InvalidParamsError
from isthmus.encoding.codec import camel, from_json
from isthmus.errors import DecodeError

T = TypeVar("T")

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?")
"""A number in a string, as JSON writes it."""
ID_CHARACTERS = 1000
"""Maximum length of the ids that clients choose, in characters; ids are stored with every event."""


def mapping(source: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """Return a required object."""
    value = source.get(name)
    if not isinstance(value, Mapping):
        raise InvalidParamsError(f"{where}.{name}", "expected an object")
    return cast("Mapping[str, Any]", value)


def optional_mapping(source: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any] | None:
    """Return an object, or None when it is absent."""
    return None if source.get(name) is None else mapping(source, name, where)


def text(source: Mapping[str, Any], name: str, where: str) -> str:
    """Return a required string that is not empty."""
    value = source.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidParamsError(f"{where}.{name}", "expected a string that is not empty")
    return value


def optional_text(source: Mapping[str, Any], name: str, where: str) -> str | None:
    """Return a string, or None when it is absent."""
    return None if source.get(name) is None else text(source, name, where)


def optional_id(source: Mapping[str, Any], name: str, where: str) -> str | None:
    """Return an id that a client may have chosen, or None when it is absent."""
    value = optional_text(source, name, where)
    if value is not None and len(value) > ID_CHARACTERS:
        raise InvalidParamsError(f"{where}.{name}", f"expected at most {ID_CHARACTERS} characters")
    return value


def count(source: Mapping[str, Any], name: str, where: str) -> int | None:
    """Return a whole number, 0 or more; None when it is absent. ProtoJSON lets it be a string or have an exponent."""
    value = source.get(name)
    if value is None:
        return None
    number = _whole(value)
    if number is None or number < 0:
        raise InvalidParamsError(f"{where}.{name}", "expected a whole number, 0 or more")
    return number


def _whole(value: object) -> int | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value) if not value.removeprefix("-").isdecimal() else int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag(source: Mapping[str, Any], name: str, where: str) -> bool | None:
    """Return true or false; None when it is absent."""
    value = source.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidParamsError(f"{where}.{name}", "expected true or false")
    return value


def message_of(kind: type[T], value: object, where: str) -> T:
    """Return a message of the extension."""
    try:
        return from_json(kind, value, where)
    except DecodeError as error:
        raise InvalidParamsError(error.path, f"expected {error.expected}") from error


def proto_names(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object of ProtoJSON with its names in lowerCamelCase, without empty ids."""
    named = {camel(name): value for name, value in source.items()}
    return {name: value for name, value in named.items() if value != "" or name not in ("taskId", "contextId")}


def excerpt(value: object) -> str:
    """Return the beginning of a value for an error message, as JSON."""
    return json.dumps(value, default=str)[:80]


def metadata_of(params: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return the metadata objects of a request, its message's first, without values that are not objects."""
    message = params.get("message")
    own = cast("Mapping[str, Any]", message).get("metadata") if isinstance(message, Mapping) else None
    found = (own, params.get("metadata"))
    return tuple(cast("Mapping[str, Any]", item) for item in found if isinstance(item, Mapping))
