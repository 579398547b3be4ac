"""Tolerant reading of JSON of unknown form: an absent value, or one of another type, reads as empty.

Not here: reading JSON whose wrong form is an error, see :mod:`isthmus.encoding.codec`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast

from isthmus.encoding.codec import JsonObject


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Return whether a value is a JSON object."""
    return isinstance(value, (dict, Mapping))  # dict first: it is the usual one, and a Mapping's check is slow


def as_object(value: object) -> JsonObject:
    """Return a value that is a JSON object; otherwise an empty object."""
    return value if is_object(value) else {}


def as_list(value: object) -> Sequence[Any]:
    """Return a value that is a JSON array; otherwise an empty array."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def as_text(value: object) -> str:
    """Return a value that is a string; otherwise an empty string."""
    return value if isinstance(value, str) else ""
