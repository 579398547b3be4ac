"""Reading JSON that a provider sent, without trusting its shape.

A field that is absent or of another type reads as empty: what a newer server sends must never end a turn. This is
deliberately not a validator; what has to be kept unchanged is kept as it came, by the readers of each provider.
"""

import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeGuard, cast

from isthmus.codec import JsonObject
from isthmus.text import with_ellipsis


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether it is a JSON object."""
    return isinstance(value, Mapping)


def as_object(value: object) -> Mapping[str, Any]:
    """The JSON object, or an empty one."""
    return value if is_object(value) else {}


def as_list(value: object) -> Sequence[Any]:
    """The JSON array, or an empty one."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def as_text(value: object) -> str:
    """The string, or an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """The number, not negative and whole, or 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**53:
        return 0
    return int(value)


def without(value: JsonObject, *names: str) -> dict[str, Any]:
    """A copy without these fields."""
    return {name: item for name, item in value.items() if name not in names}


def tool_arguments(text: str) -> tuple[JsonObject, str | None]:
    """The arguments of a tool call out of their JSON text, and why they are not usable, if so.

    No text at all means no arguments.
    """
    if not text.strip():
        return {}, None
    try:
        value: object = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        return {}, f"the arguments are not valid JSON ({error}): {excerpt(text)}"
    if not is_object(value):
        return {}, f"the arguments are not a JSON object: {excerpt(text)}"
    return value, None


def unused_id(given: str, used: Collection[str]) -> str:
    """The id that the server gave, or a new one when it gave none or one that the conversation has already."""
    return given if given and given not in used else f"call_{secrets.token_hex(8)}"


def excerpt(text: str, limit: int = 300) -> str:
    """One printable line of at most `limit` characters."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text[: limit * 4]).split())
    return with_ellipsis(line, limit)
