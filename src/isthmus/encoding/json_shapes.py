"""Reading JSON whose shape nobody promised: what is absent or of another type reads as empty, and ends nothing.

Deliberately not a validator: where a wrong shape is an error, :mod:`isthmus.encoding.codec` reads it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast

from isthmus.encoding.codec import JsonObject


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Return whether it is a JSON object."""
    return isinstance(value, Mapping)


def as_object(value: object) -> JsonObject:
    """Return the JSON object, or an empty one."""
    return value if is_object(value) else {}


def as_list(value: object) -> Sequence[Any]:
    """Return the JSON array, or an empty one."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def as_text(value: object) -> str:
    """Return the string, or an empty one."""
    return value if isinstance(value, str) else ""
