"""Data types of LSP that the editor port uses too: positions, ranges, file URIs, lists and objects. Pure.

Functions that decode raise :class:`~isthmus.errors.DecodeError` with the name of the wrong member.
"""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from isthmus.encoding.codec import JsonObject, camel, from_json
from isthmus.errors import DecodeError
from isthmus.ide.editor import Position, Range
from isthmus.ide.file_uri import path_of_uri
from isthmus.ide.positions import ordered
from isthmus.record import record

T = TypeVar("T")


@record
class LspPosition:
    """A 0-based position; ``character`` counts in the encoding that was agreed on."""

    line: int
    character: int


@record
class LspRange:
    """A range without its ``end``."""

    start: LspPosition
    end: LspPosition


def encode_range(at: Range) -> JsonObject:
    """Return a range in LSP's form."""
    return {
        "start": {"line": at.start.line, "character": at.start.character},
        "end": {"line": at.end.line, "character": at.end.character},
    }


def decode_path(uri: str, where: str) -> str:
    """Return the path of the file URI in the member ``uri`` of ``where``."""
    path = path_of_uri(uri)
    if path is None:
        raise DecodeError(f"{where}.uri", "a file: URI with an absolute path", uri)
    return path


def decode_position(position: LspPosition) -> Position:
    """Return a position, with 0 for negative numbers."""
    return Position(max(position.line, 0), max(position.character, 0))


def decode_range(at: LspRange) -> Range:
    """Return a range with its ends in order."""
    return ordered(decode_position(at.start), decode_position(at.end))


def decoded(kind: type[T], value: object, where: str) -> T:
    """Return an object whose members are the fields of ``kind``; errors name them as on the wire."""
    try:
        return from_json(kind, value, where)
    except DecodeError as error:
        path = ".".join(map(camel, error.path.split(".")))
        raise DecodeError(path, error.expected, error.received) from error


def list_of(kind: type[T], value: object, where: str) -> list[T]:
    """Return a list of objects of ``kind``; null is an empty list."""
    return [decoded(kind, item, f"{where}[{index}]") for index, item in enumerate(a_list(value, where))]


def a_list(value: object, where: str) -> list[Any]:
    """Return a list; null is an empty one."""
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
