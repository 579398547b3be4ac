"""Conversion of frozen dataclasses to and from JSON, by their type hints.

Output uses the Python names (snake_case, as in Appendix A of the development-tool extension) and enum names, and omits
None. Input also accepts camelCase keys, enum numbers and unknown keys, so that newer peers are not refused. An invalid
value raises :class:`~isthmus.errors.DecodeError` with the name of the field. This is not a general serialiser: it
supports only the types that the extension's messages use, and the types of protocols whose JSON has camelCase names and
tagged unions (:func:`to_camel_json`).

A dataclass with ``TAG = ("type", "text")`` is the member of a union whose objects have the type "text"; the member with
the tag None takes the objects of any other type. A field annotated with :class:`WireName` has that name in JSON.
"""

import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path, PurePath
from typing import Annotated, Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from isthmus.encoding.shared_objects import SharedObjects
from isthmus.errors import DecodeError
from isthmus.record import record

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object with any values, e.g. the arguments of a tool (``google.protobuf.Struct``)."""

T = TypeVar("T")
MAXIMUM_DEPTH = 100
"""Maximum nesting of arrays and objects in input: functions that traverse a value are recursive."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN: frozenset[type] = frozenset({bool, int, float, type(None)})
_TEXTLESS: set[type] = {*_PLAIN, SharedObjects}
"""Types whose values contain no text to check; enums are added when they are first seen."""
Decoder: TypeAlias = Callable[[Any, str], Any]


def to_json(value: object) -> dict[str, Any]:
    """Return the JSON object of a dataclass; fields that are None are left out."""
    encoded: dict[str, Any] = {}
    for name in _field_names(type(value)):
        item = getattr(value, name)
        kind: type[object] = item.__class__
        if kind is str or kind is dict:  # as most are
            encoded[name] = item
        elif item is not None:
            encoded[name] = _encode(item)
    return encoded


@record
class WireName:
    """Name of a field in JSON, where it is not the field's own in another case."""

    name: str


def to_camel_json(value: object) -> dict[str, Any]:
    """Return the JSON object of a dataclass in camelCase, with its tag; fields that are None are left out."""
    key, tag = getattr(value, "TAG", ("", None))
    encoded: dict[str, Any] = {} if tag is None else {key: tag}
    for name, alias in _aliases(type(value)):
        item = getattr(value, name)
        if item is not None:
            encoded[alias] = _encode_camel(item)
    return encoded


def _encode_camel(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_encode_camel(item) for item in cast("Sequence[object]", value)]
    return to_camel_json(value) if is_dataclass(value) else value


@cache
def _aliases(kind: type) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, field.alias) for field in _known_fields(kind))


def from_json(kind: type[T], value: object, path: str | None = None) -> T:
    """Return an instance of the dataclass ``kind`` from a JSON object.

    Raises:
        DecodeError: a required field is missing, a value has the wrong type, or a oneof has two members.
    """
    return cast(T, _decoder(kind)(value, path or kind.__name__))


def well_formed(value: T) -> T:
    r"""Return the value with every lone surrogate in its texts replaced by U+FFFD, or the same value if there is none.

    Text with lone surrogates is not Unicode and could be neither stored nor sent. It comes from ``\ud800`` in JSON or
    from file names that are not UTF-8.
    """
    kind: type[object] = value.__class__
    if kind in _TEXTLESS or (isinstance(value, str) and value.isascii()):
        return value
    return _walker(kind)(value)


def is_deeper(value: object, limit: int = MAXIMUM_DEPTH) -> bool:
    """Return whether objects and lists are nested more than `limit` deep in a JSON value."""
    level: list[object] = [value]
    for _ in range(limit + 1):
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(cast("dict[str, object]", item).values())
            elif isinstance(item, list):
                inner.extend(cast("list[object]", item))
        level = inner
        if not level:
            return False
    return True


@cache
def _walker(kind: type[object]) -> Callable[[Any], Any]:
    """Return the function that makes values of a type well-formed; cached, because every event passes it."""
    if issubclass(kind, Enum):
        _TEXTLESS.add(kind)
        return _unchanged
    if issubclass(kind, str):
        return _well_formed_text
    if issubclass(kind, PurePath):
        return _well_formed_path
    if issubclass(kind, Mapping):
        return _well_formed_object
    if issubclass(kind, (list, tuple)):
        return _well_formed_list
    return _well_formed_message(kind) if is_dataclass(kind) else _unchanged


def _unchanged(value: Any) -> Any:
    return value


def _well_formed_text(text: str) -> str:
    return text if text.isascii() or not _SURROGATE.search(text) else _SURROGATE.sub("\ufffd", text)


def _well_formed_path(path: PurePath) -> PurePath:
    text = str(path)
    return path if (fine := _well_formed_text(text)) is text else type(path)(fine)


def _well_formed_object(value: Mapping[str, Any]) -> Mapping[str, Any]:
    for name, item in value.items():
        if well_formed(name) is not name or well_formed(item) is not item:
            break
    else:
        return value  # true for nearly every object
    return {well_formed(name): well_formed(item) for name, item in value.items()}


def _well_formed_list(value: "list[Any] | tuple[Any, ...]") -> "list[Any] | tuple[Any, ...]":
    for item in value:
        if well_formed(item) is not item:
            break
    else:
        return value
    fine = [well_formed(item) for item in value]
    return tuple(fine) if isinstance(value, tuple) else fine


def _well_formed_message(kind: type[object]) -> Callable[[Any], Any]:
    names = _field_names(kind)

    def walk(value: Any) -> Any:
        changed: dict[str, Any] = {}
        for name in names:
            part = getattr(value, name)
            part_kind: type[object] = part.__class__
            if part_kind in _TEXTLESS or (part_kind is str and part.isascii()):
                continue
            if (fine := well_formed(part)) is not part:
                changed[name] = fine
        return replace(value, **changed) if changed else value

    return walk


def camel(name: str) -> str:
    """Return a name in camelCase: ``tool_call_id`` becomes ``toolCallId``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _encode(value: Any) -> Any:
    kind: type[object] = value.__class__
    if kind is str or kind in _PLAIN or kind is SharedObjects:
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (tuple, list)):
        return [_encode(item) for item in cast("Sequence[object]", value)]
    if isinstance(value, PurePath):
        return str(value)
    if is_dataclass(value):
        return to_json(value)
    return value


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@record
class _Field:
    name: str
    alias: str
    decode: Decoder
    expected: str
    required: bool
    optional: bool


@cache
def _decoder(hint: Any) -> Decoder:
    origin = get_origin(hint)
    if origin is Annotated:
        return _decoder(get_args(hint)[0])
    if origin in (Union, types.UnionType):
        members = [argument for argument in get_args(hint) if argument is not type(None)]
        return _decoder(members[0]) if len(members) == 1 else _tagged(tuple(members))
    if origin is tuple:
        return _repeated(_decoder(get_args(hint)[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _object
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _message(hint)
    return _anything if hint is Any else _SCALARS[hint]


def _scalar(expected: str, *kinds: type) -> Decoder:
    def decode(value: Any, path: str) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise DecodeError(path, expected, value)
        return value

    return decode


def _path(value: Any, path: str) -> Any:
    return Path(_SCALARS[str](value, path))


_SCALARS: dict[Any, Decoder] = {
    str: _scalar("a string", str),
    int: _scalar("a whole number", int),
    float: _scalar("a number", int, float),
    bool: _scalar("true or false", bool),
    Path: _path,
}


def _object(value: Any, path: str) -> Any:
    if not isinstance(value, Mapping):
        raise DecodeError(path, "an object", value)
    return cast("Mapping[str, Any]", value)


def _repeated(decode_item: Decoder) -> Decoder:
    def decode(value: Any, path: str) -> Any:
        if not isinstance(value, (list, tuple)):
            raise DecodeError(path, "a list", value)
        if isinstance(value, SharedObjects) and decode_item is _object:
            return value
        items = cast("Sequence[Any]", value)
        return tuple(decode_item(item, f"{path}[{index}]") for index, item in enumerate(items))

    return decode


def _anything(value: Any, path: str) -> Any:
    return value


def _tagged(members: tuple[Any, ...]) -> Decoder:
    """Return the decoder of a union of dataclasses that a field of the object tells apart."""
    key = members[0].TAG[0]
    by_tag: dict[str | None, Decoder] = {member.TAG[1]: _decoder(member) for member in members}
    expected = "one of " + ", ".join(tag for tag in by_tag if tag is not None)

    def decode(value: Any, path: str) -> Any:
        tag = _object(value, path).get(key)
        found = by_tag.get(tag if isinstance(tag, str) else None, by_tag.get(None))
        if found is None:
            raise DecodeError(f"{path}.{key}", expected, tag)
        return found(value, path)

    return decode


def _enum(kind: type[Enum]) -> Decoder:
    expected = "one of " + ", ".join(kind.__members__)

    def decode(value: Any, path: str) -> Any:
        if isinstance(value, str) and value in kind.__members__:
            return kind[value]
        if isinstance(value, int) and not isinstance(value, bool):
            try:
                return kind(value)
            except ValueError:
                pass
        raise DecodeError(path, expected, value)

    return decode


@cache
def _known_fields(kind: type) -> tuple[_Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        _Field(
            field.name,
            _wire_name(hints[field.name]) or camel(field.name),
            _decoder(hints[field.name]),
            _describe(hints[field.name]),
            field.default is MISSING and field.default_factory is MISSING,
            _is_optional(hints[field.name]),
        )
        for field in fields(kind)
    )


def _message(kind: type) -> Decoder:
    def decode(value: Any, path: str) -> Any:
        source = _object(value, path)
        values: dict[str, Any] = {}
        for field in _known_fields(kind):  # not earlier, since a message may contain itself
            item = source.get(field.name, source.get(field.alias))
            where = f"{path}.{field.name}"
            if item is None and field.name not in source and field.alias not in source:
                if field.required:
                    raise DecodeError(where, field.expected, None)
                continue
            if item is None and field.optional:
                continue
            values[field.name] = field.decode(item, where)
        try:
            return kind(**values)
        except OneofError as error:
            raise DecodeError(path, str(error), sorted(source)) from error

    return decode


def _wire_name(hint: Any) -> str | None:
    return next((item.name for item in get_args(hint)[1:] if isinstance(item, WireName)), None)


def _is_optional(hint: Any) -> bool:
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return type(None) in get_args(inner)


def _describe(hint: Any) -> str:
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    names = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", Path: "a string"}
    if inner in names:
        return names[inner]
    if hasattr(inner, "__dataclass_fields__"):
        return "an object"
    return "a list" if get_origin(inner) is tuple else "an object" if not isinstance(inner, type) else inner.__name__


class OneofError(ValueError):
    """Message with more than one member of a oneof."""


def require_at_most_one(message: object, oneof: str, *names: str) -> None:
    """Check a oneof of the protocol: at most one of the fields ``names`` of ``message`` may be set.

    Raises:
        OneofError: two or more are set.
    """
    present = [name for name in names if getattr(message, name) is not None]
    if len(present) > 1:
        raise OneofError(f"at most one of {', '.join(names)} (oneof {oneof})")
