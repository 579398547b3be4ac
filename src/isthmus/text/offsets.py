"""Offsets in a text, counted in bytes, 16-bit code units or code points. Pure."""

from enum import StrEnum


class OffsetEncoding(StrEnum):
    """Unit of an offset in a text: bytes, 16-bit code units or code points, by their names in LSP."""

    UTF_8 = "utf-8"
    UTF_16 = "utf-16"
    UTF_32 = "utf-32"


def encoded_length(text: str, encoding: OffsetEncoding) -> int:
    """Return the length of `text` in the units of an encoding."""
    if text.isascii() or encoding is OffsetEncoding.UTF_32:
        return len(text)
    return sum(_units(character, encoding) for character in text)


def offset_from_encoded(text: str, units: int, encoding: OffsetEncoding) -> int:
    """Return the offset in code points of an offset in units of an encoding; inside a character it means its start."""
    if text.isascii() or encoding is OffsetEncoding.UTF_32:
        return min(max(units, 0), len(text))
    passed = 0
    for index, character in enumerate(text):
        passed += _units(character, encoding)
        if passed > units:
            return index
    return len(text)


def _units(character: str, encoding: OffsetEncoding) -> int:
    if encoding is OffsetEncoding.UTF_16:
        return 2 if character > "\uffff" else 1
    return 1 + (character > "\x7f") + (character > "\u07ff") + (character > "\uffff")


def utf16_length(text: str) -> int:
    """Return the length of `text` in UTF-16 code units."""
    return encoded_length(text, OffsetEncoding.UTF_16)


def offset_from_utf16(text: str, units: int) -> int:
    """Return an offset in UTF-16 code units as one in code points; inside a surrogate pair it means its start."""
    return offset_from_encoded(text, units, OffsetEncoding.UTF_16)
