"""Reading what a provider sent, without trusting its shape: what a newer server sends must never end a turn.

What is absent or of another type reads as empty. What has to be kept unchanged is kept as it came, by the readers of
each provider.
"""

import json
import secrets
from collections.abc import Collection
from typing import Any

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import is_object
from isthmus.text.visible import single_line, with_ellipsis


def as_count(value: object) -> int:
    """Return the number, not negative and whole, or 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**53:
        return 0
    return int(value)


def without(value: JsonObject, *names: str) -> dict[str, Any]:
    """Return a copy without these fields."""
    return {name: item for name, item in value.items() if name not in names}


def tool_arguments(text: str) -> tuple[JsonObject, str | None]:
    """Return the arguments of a tool call out of their JSON text, and why they are not usable, if so.

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
    """Return the id that the server gave, or a new one when it gave none or one that the conversation has already."""
    return given if given and given not in used else f"call_{secrets.token_hex(8)}"


def excerpt(text: str, limit: int = 300) -> str:
    """One printable line of at most `limit` characters."""
    return with_ellipsis(" ".join(single_line(text[: limit * 4]).split()), limit)
