"""Tolerant reading of a provider's data: an unexpected form, such as a newer server's, must never end a turn.

An absent field, or one of another type, reads as empty. Data that must stay unchanged is kept by the reader of each
provider.
"""

import secrets
from collections.abc import Collection
from typing import Any

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import is_object
from isthmus.encoding.json_text import JsonError, decode_any_text
from isthmus.text.visible import single_line, with_ellipsis


def as_count(value: object) -> int:
    """Return a value as a non-negative whole number, or 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**53:
        return 0
    return int(value)


def without(value: JsonObject, *names: str) -> dict[str, Any]:
    """Return a copy without these fields."""
    return {name: item for name, item in value.items() if name not in names}


def tool_arguments(text: str) -> tuple[JsonObject, str | None]:
    """Return the arguments of a tool call from their JSON text, and the reason if they are not usable.

    An empty text means no arguments.
    """
    if not text.strip():
        return {}, None
    try:
        value: object = decode_any_text(text)
    except JsonError as error:
        return {}, f"the arguments are not valid JSON ({error}): {excerpt(text)}"
    if not is_object(value):
        return {}, f"the arguments are not a JSON object: {excerpt(text)}"
    return value, None


def unused_id(given: str, used: Collection[str]) -> str:
    """Return the server's id, or a new one if it is empty or already used in the conversation."""
    return given if given and given not in used else f"call_{secrets.token_hex(8)}"


def excerpt(text: str, limit: int = 300) -> str:
    """Return a text as one printable line of at most `limit` characters."""
    return with_ellipsis(" ".join(single_line(text[: limit * 4]).split()), limit)
