"""Text that shows everything that is in it: control characters, and marks that reorder, as printable stand-ins.

For what a person reviews before they say yes, on whatever surface: a terminal, an editor's question, a page. What drops
such characters instead is in :mod:`isthmus.terminal.sanitize` and :mod:`isthmus.text`.
"""

import re

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks that reorder text on the screen, so that what is read is not what is run ("Trojan Source")."""
_SEPARATORS = (0x2028, 0x2029)
_TAG_CHARACTERS = range(0xE0000, 0xE0080)
"""Invisible copies of ASCII."""

_VISIBLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: "\u2421",
    **{code: f"\\x{code:02x}" for code in range(0x80, 0xA0)},
    **{code: f"\\u{code:04x}" for code in (*_BIDI, *_SEPARATORS)},
    **{code: f"\\U{code:08x}" for code in _TAG_CHARACTERS},
}
SUSPICIOUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
"""What shows nothing itself, or changes how other text is shown; tabs and newlines are none of it."""


def visible(text: str) -> str:
    """The text with every control character, and every mark that reorders text, shown as a printable stand-in.

    Newlines and tabs stay, CRLF counts as a newline, and a lone surrogate becomes U+FFFD.
    """
    if not SUSPICIOUS.search(text):
        return text
    return SUSPICIOUS.sub(_stand_in, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    """``visible`` in one line: newlines and tabs are shown as well."""
    return visible(text).replace("\n", "\u240a").replace("\t", "\u2409")


def _stand_in(found: re.Match[str]) -> str:
    character = found[0]
    return "\ufffd" if is_surrogate(character) else _VISIBLE[ord(character)]


def is_surrogate(character: str) -> bool:
    """Whether it is half of a pair of UTF-16, which no text on its own can hold."""
    return "\ud800" <= character <= "\udfff"
