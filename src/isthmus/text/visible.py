"""Text that is safe to show: it cannot control a terminal or a log, and shows its hidden characters or has none.

Model text, tool output, file contents, file names and names that servers choose all pass through here.

- ``visible`` is for text that a user approves: everything hidden gets a printable stand-in, and so does a letter of
  another alphabet that looks like a Latin one beside Latin letters.
- ``visible_prose`` keeps what emoji and some scripts need, ``visible_line`` makes one line.
- ``without_escapes`` removes terminal sequences and everything hidden: for the output of programs, and for text that
  other programs read.
- ``without_control_characters`` removes terminal sequences, but marks other control characters.
- ``single_line`` is for a short mention, ``printable`` for paths.
"""

import re
from collections.abc import Iterable

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks that reorder text on the screen, so that what is read is not what is run ("Trojan Source")."""
_SEPARATORS = (0x2028, 0x2029)
_TAG_CHARACTERS = range(0xE0000, 0xE0080)
"""Invisible copies of ASCII."""

_INVISIBLE = (
    *(0x00AD, 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, 0xFEFF, 0xFFA0),
    *(*range(0x200B, 0x200E), *range(0x2060, 0x2066), *range(0x206A, 0x2070), *range(0xFE00, 0xFE10)),
    *(*range(0xFFF0, 0xFFFC), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0080, 0xE1000)),
)
"""Letters, joiners and selectors that take no room and change nothing, so that two different texts look alike.

Unicode's Default_Ignorable_Code_Point, but for what is above, and the marks around interlinear annotations.
"""
_BLANKS = (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x2800)
"""Characters that look like a space and are none to a shell. Not the wide space of Chinese and Japanese."""
_LOOKALIKES = (
    *(0x0251, 0x0261, 0x039F, 0x03A1, 0x03A7, 0x03BD, 0x03BF, 0x03C1, 0x0408, 0x0410, 0x0412, 0x0415),
    *(0x041A, 0x0425, 0x0430, 0x0435, 0x043A, 0x043E, 0x0443, 0x0445, 0x0458, 0x04BB, 0x04C0, 0x04CF),
    *(0x0501, 0x050C, 0x0555, 0x0578, 0x057D, 0x0585),
    *(*range(0x0391, 0x0393), *range(0x0395, 0x0398), *range(0x0399, 0x039B), *range(0x039C, 0x039E)),
    *(*range(0x03A4, 0x03A6), *range(0x0405, 0x0407), *range(0x041C, 0x041F), *range(0x0420, 0x0424)),
    *(*range(0x0440, 0x0442), *range(0x0455, 0x0457), *range(0x0474, 0x0476), *range(0x04AE, 0x04B0)),
    *(*range(0x051A, 0x051E), *range(0x13A0, 0x13F6), *range(0xAB70, 0xABC0), *range(0x2C80, 0x2CE4)),
    *(*range(0xA4D0, 0xA500), *range(0x2160, 0x2180), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B)),
    *range(0x1D400, 0x1D800),
)
"""Letters of Cyrillic, Greek, Armenian, Cherokee, Coptic and Lisu, and variants, that look like Latin letters."""

_VISIBLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: "\u2421",
    **{code: f"\\x{code:02x}" for code in range(0x80, 0xA0)},
    **{code: f"\\u{code:04x}" for code in (*_BIDI, *_SEPARATORS)},
    **{code: f"\\U{code:08x}" for code in _TAG_CHARACTERS},
    **{
        code: f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}" for code in (*_INVISIBLE, *_BLANKS, *_LOOKALIKES)
    },
}


def _class(codes: Iterable[int]) -> str:
    """Return characters for a class of a regular expression, as ranges."""
    ranges: list[list[int]] = []
    for code in sorted(codes):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


SUSPICIOUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls a terminal, or changes how other text is shown; tabs and newlines are none of it."""
_HIDDEN = re.compile(f"{SUSPICIOUS.pattern[:-1]}{_class(_INVISIBLE)}{_class(_BLANKS)}]")
_LOOKALIKE = re.compile(f"[{_class(_LOOKALIKES)}]")
_LETTERS = re.compile(f"[A-Za-z{_class(_LOOKALIKES)}]+")
_LATIN = re.compile("[A-Za-z]")
_HIDDEN_IN_PROSE = re.compile(
    f"{SUSPICIOUS.pattern[:-1]}{_class(code for code in _INVISIBLE if code not in (0x200C, 0x200D, 0xFE0E, 0xFE0F))}"
    "]|(?<=[\x00-\x7f])[\u200c\u200d\ufe0e\ufe0f](?=[\x00-\x7f])"
)
"""All but the joiners and selectors that emoji and some scripts need; ASCII text needs none of them."""

ESCAPE_SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    # OSC, DCS, SOS, PM, APC, in none of which another one begins
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\x9d\x90\x98\x9e\x9f]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]"  # everything else of two or three characters
    "|\x1b$"
)
"""Terminal sequences that move the cursor, colour text, or name windows and links; in 7-bit and 8-bit form."""

CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters except tabs and line ends."""
_NOT_PLAIN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that end a line somewhere, or that a terminal takes for commands."""


def visible(text: str) -> str:
    """Return text with printable stand-ins for everything that hides or reorders text, or looks Latin; for approvals.

    Newlines and tabs stay, CRLF counts as a newline, and a lone surrogate becomes U+FFFD.
    """
    if not text.isascii() and _LOOKALIKE.search(text):
        text = _LETTERS.sub(_without_lookalikes, text)
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


def _without_lookalikes(found: re.Match[str]) -> str:
    """Return letters with stand-ins for those that look Latin, if there is a Latin one among them."""
    letters = found[0]
    return _LOOKALIKE.sub(lambda one: _VISIBLE[ord(one[0])], letters) if _LATIN.search(letters) else letters


def is_surrogate(character: str) -> bool:
    """Return whether it is half of a pair of UTF-16, which no text on its own can hold."""
    return "\ud800" <= character <= "\udfff"


def without_control_characters(text: str) -> str:
    r"""Return text that does nothing to a terminal: without sequences, other control characters as U+FFFD.

    Line ends of other systems become ``\n``.
    """
    if _NOT_PLAIN.search(text) is None:
        return text
    text = ESCAPE_SEQUENCES.sub("", text.replace("\r\n", "\n"))
    return CONTROL_CHARACTERS.sub("\ufffd", text.replace("\r", "\n"))


def without_escapes(text: str) -> str:
    """Return the text without terminal sequences and other hidden characters; a CR alone becomes a newline."""
    if not SUSPICIOUS.search(text):
        return text
    plain = ESCAPE_SEQUENCES.sub("", text.replace("\r\n", "\n")).replace("\r", "\n")
    return SUSPICIOUS.sub(lambda found: "\ufffd" if is_surrogate(found[0]) else "", plain)


def output_lines(text: str) -> list[str]:
    """Return the lines of a program's output as a terminal shows them: of a line redrawn with CR the last version."""
    versions = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    lines = without_escapes("\n".join(versions)).expandtabs(8).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def single_line(text: str) -> str:
    """Return text with a space for each character that cannot be printed, newlines too."""
    return "".join(character if character.isprintable() else " " for character in text)


def with_ellipsis(text: str, longest: int) -> str:
    """Return a text with ``…`` in place of its end if it has more than ``longest`` characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def printable(path: str) -> str:
    """Return a path for messages, logs and listings, in one line.

    Bytes that are not UTF-8, half surrogate pairs, line breaks and other control characters are shown as escapes.
    """
    try:
        text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        text = path.encode("utf-8", "backslashreplace").decode()
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
