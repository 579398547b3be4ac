"""Shapes of LSP that the wire of editors shares with it: positions, ranges, file URIs, and lists and objects. Pure.

Every function that decodes raises :class:`~isthmus.errors.DecodeError` naming the member that is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from isthmus.encoding.codec import JsonObject, camel, from_json
from isthmus.errors import DecodeError
from isthmus.ide.editor import Position, Range
from isthmus.ide.file_uri import path_of_uri
from isthmus.ide.positions import ordered

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LspPosition:
    """0-based; what ``character`` counts was agreed on."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class LspRange:
    """``end`` is not included."""

    start: LspPosition
    end: LspPosition


def encode_range(at: Range) -> JsonObject:
    """Return a range as LSP has it."""
    return {
        "start": {"line": at.start.line, "character": at.start.character},
        "end": {"line": at.end.line, "character": at.end.character},
    }


def decode_path(uri: str, where: str) -> str:
    """Return the path of a file URI in a member ``uri`` of ``where``."""
    path = path_of_uri(uri)
    if path is None:
        raise DecodeError(f"{where}.uri", "a file: URI with an absolute path", uri)
    return path


def decode_position(position: LspPosition) -> Position:
    """Return a position; less than 0 is 0."""
    return Position(max(position.line, 0), max(position.character, 0))


def decode_range(at: LspRange) -> Range:
    """Return a range, its ends in order."""
    return ordered(decode_position(at.start), decode_position(at.end))


def decoded(kind: type[T], value: object, where: str) -> T:
    """Return an object whose members are the fields of ``kind``, which errors name as they are on the wire."""
    try:
        return from_json(kind, value, where)
    except DecodeError as error:
        path = ".".join(map(camel, error.path.split(".")))
        raise DecodeError(path, error.expected, error.received) from error


def list_of(kind: type[T], value: object, where: str) -> list[T]:
    """Return a list of such objects; nothing is an empty one."""
    return [decoded(kind, item, f"{where}[{index}]") for index, item in enumerate(a_list(value, where))]


def a_list(value: object, where: str) -> list[Any]:
    """Return a list; nothing is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise DecodeError(where, "a list", value)
    return cast("list[Any]", value)


def an_object(value: object, where: str) -> JsonObject:
    """Return an object."""
    if not isinstance(value, Mapping):
        raise DecodeError(where, "an object", value)
    return cast(JsonObject, value)


def a_text(value: object, where: str) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise DecodeError(where, "a string", value)
    return value
