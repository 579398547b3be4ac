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

_INVISIBLE = (
    *(0x00AD, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0),
    *(*range(0x200B, 0x200E), *range(0x2060, 0x2065), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
)
"""Letters, joiners and selectors that take no room and change nothing, so that two different texts look alike."""

_VISIBLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: "\u2421",
    **{code: f"\\x{code:02x}" for code in range(0x80, 0xA0)},
    **{code: f"\\u{code:04x}" for code in (*_BIDI, *_SEPARATORS)},
    **{code: f"\\U{code:08x}" for code in _TAG_CHARACTERS},
    **{code: f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}" for code in _INVISIBLE},
}
SUSPICIOUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls a terminal, or changes how other text is shown; tabs and newlines are none of it."""
_HIDDEN = re.compile(SUSPICIOUS.pattern[:-1] + "".join(map(chr, _INVISIBLE)) + "]")
_HIDDEN_IN_PROSE = re.compile(
    SUSPICIOUS.pattern[:-1]
    + "".join(chr(code) for code in _INVISIBLE if code not in (0x200C, 0x200D, 0xFE0E, 0xFE0F))
    + "]|(?<=[\x00-\x7f])[\u200c\u200d\ufe0e\ufe0f](?=[\x00-\x7f])"
)
"""Without the joiners and selectors that emoji and some scripts need; between ASCII nothing needs them."""


def visible(text: str) -> str:
    """The text with everything shown that is invisible, or reorders text, by a printable stand-in; for approvals.

    Newlines and tabs stay, CRLF counts as a newline, and a lone surrogate becomes U+FFFD.
    """
    return _shown(text, _HIDDEN)


def visible_prose(text: str) -> str:
    """``visible`` for text that nobody approves: emoji, and scripts that need invisible joiners, stay as they are."""
    return _shown(text, _HIDDEN_IN_PROSE)


def visible_line(text: str) -> str:
    """``visible`` in one line: newlines and tabs are shown as well."""
    return visible(text).replace("\n", "\u240a").replace("\t", "\u2409")


def _shown(text: str, hidden: re.Pattern[str]) -> str:
    return hidden.sub(_stand_in, text.replace("\r\n", "\n")) if hidden.search(text) else text


def _stand_in(found: re.Match[str]) -> str:
    character = found[0]
    return "\ufffd" if is_surrogate(character) else _VISIBLE[ord(character)]


def is_surrogate(character: str) -> bool:
    """Whether it is half of a pair of UTF-16, which no text on its own can hold."""
    return "\ud800" <= character <= "\udfff"
