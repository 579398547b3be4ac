"""Untrusted text on its way to a terminal or a log: it may say anything and control nothing.

Model text, tool output, file contents and file names all pass through here before they are printed. ``visible``
shows what was hidden (for what a person reviews), ``without_escapes`` drops terminal sequences whole (for the output
of programs, and for text that other programs read). Deliberately not here: any layout or colour.
"""

import re

from isthmus.text import ESCAPE_SEQUENCES

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
_SUSPICIOUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """The text with every control character, and every mark that reorders text, shown as a printable stand-in.

    Newlines and tabs stay, CRLF counts as a newline, and a lone surrogate becomes U+FFFD.
    """
    if not _SUSPICIOUS.search(text):
        return text
    return _SUSPICIOUS.sub(_stand_in, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    """``visible`` in one line: newlines and tabs are shown as well."""
    return visible(text).replace("\n", "\u240a").replace("\t", "\u2409")


def without_escapes(text: str) -> str:
    """The text without terminal sequences; control characters that remain are dropped, CR alone is a line end."""
    if not _SUSPICIOUS.search(text):
        return text
    plain = ESCAPE_SEQUENCES.sub("", text.replace("\r\n", "\n")).replace("\r", "\n")
    return _SUSPICIOUS.sub(lambda found: "\ufffd" if _is_surrogate(found[0]) else "", plain)


def output_lines(text: str) -> list[str]:
    """The lines of a program's output as a terminal would leave them: of a line redrawn with CR the last version."""
    versions = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    lines = without_escapes("\n".join(versions)).expandtabs(8).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _stand_in(found: re.Match[str]) -> str:
    character = found[0]
    return "\ufffd" if _is_surrogate(character) else _VISIBLE[ord(character)]


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"
