"""Counts the values of a JSON text before it is decoded, and estimates the size of decoded ones.

Decoding and encoding many small values holds the interpreter for a long time, however few bytes they have: all of it is
one call. What is counted here takes a tenth of that time, in many short calls.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import cast

WINDOW = 1024 * 1024
"""Number of bytes that are counted in one call."""
_MARKS = (b",", b"[", b"{")
"""Characters that come before a value, or begin one with others in it."""
_NODE = 8
"""Size of a value besides its texts, in characters, approximately."""


def has_more_values(text: bytes, most: int) -> bool:
    """Return whether a JSON text has more than ``most`` values, give or take the empty lists and objects.

    Commas and brackets in strings do not count. Of a text that is not JSON, the answer says nothing.
    """
    if sum(_count(text[start : start + WINDOW]) for start in range(0, len(text), WINDOW)) <= most:
        return False  # also with those in strings
    count, is_inside, carried = 0, False, b""
    for start in range(0, len(text), WINDOW):
        piece = carried + text[start : start + WINDOW]
        # A backslash whose character is in the next piece goes there.
        carried = b"\\" if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""
        piece = piece[: len(piece) - len(carried)].replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        count += _count(b" ".join(parts[1::2] if is_inside else parts[::2]))
        if count > most:
            return True
        is_inside ^= len(parts) % 2 == 0
    return False


def _count(text: bytes) -> int:
    return sum(map(text.count, _MARKS))


def size_of_value(value: object, enough: int) -> int:
    """Return about how many characters a decoded JSON value has; what is beyond ``enough`` is not looked at."""
    size, left = 0, [value]
    while left and size < enough:
        found = left.pop()
        size += _NODE
        if isinstance(found, str):
            size += len(found)
        elif isinstance(found, Mapping):
            items = list(itertools.islice(cast("Mapping[str, object]", found).items(), enough // _NODE))
            size += sum(len(key) for key, _ in items)
            left += [item for _, item in items]
        elif isinstance(found, Sequence):
            left += cast("Sequence[object]", found)[: enough // _NODE]
    return size
