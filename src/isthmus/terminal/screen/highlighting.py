"""Highlighted code, line by line, by Pygments, which is imported when the first code comes.

A lexer sees one line after another, and the lines before it only while they leave something open, such as a string over
several lines. So the work per line does not grow with the code. Not a style: the kinds of words are named, and
``screen`` gives them colours.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from isthmus.terminal.screen.pieces import Piece

if TYPE_CHECKING:
    from pygments.lexer import Lexer

HighlightLine: TypeAlias = Callable[[str], list[Piece]]
"""Function that returns the pieces of the next line of a block of code, without its end."""

OPEN_LINES = 60
"""Maximum number of lines before a line that its lexer sees."""
LONGEST_LINE = 2000
"""Maximum number of characters of a highlighted line."""
_PROBE = "qzx"
"""A word that shows by its kind whether something is open before it."""
_KINDS = (
    ("Comment", "comment"),
    ("Keyword", "keyword"),
    ("Literal.String", "string"),
    ("Literal.Number", "literal"),
    ("Operator.Word", "keyword"),
    ("Name.Function", "name"),
    ("Name.Class", "name"),
    ("Name.Decorator", "name"),
    ("Name.Tag", "keyword"),
    ("Generic.Deleted", "removed"),
    ("Generic.Inserted", "added"),
    ("Generic.Heading", "strong"),
    ("Generic.Subheading", "strong"),
)
"""Kinds of Pygments, and the names of their styles."""


def highlighter(language: str) -> HighlightLine | None:
    """Return a highlighter for a block of code in this language, or None if the language is not known."""
    if not language:
        return None
    from pygments.lexers import find_lexer_class_by_name
    from pygments.util import ClassNotFound

    try:
        found = find_lexer_class_by_name(language)
    except ClassNotFound:
        return None
    return _Highlighter(found(stripnl=False, ensurenl=False))


class _Highlighter:
    def __init__(self, lexer: "Lexer") -> None:
        self._lexer = lexer
        self._open: list[str] = []
        _, self._closed_kind = self._read(_PROBE, 0, 0)

    def __call__(self, line: str) -> list[Piece]:
        if len(line) > LONGEST_LINE:
            self._open.clear()
            return [Piece(line, "code")]
        before = "".join(f"{earlier}\n" for earlier in self._open)
        whole = f"{before}{line}\n{_PROBE}"
        pieces, kind = self._read(whole, len(before), len(before) + len(line))
        if kind == self._closed_kind:
            self._open.clear()
        elif len(self._open) < OPEN_LINES:
            self._open.append(line)
        else:
            self._open = [line]
        return pieces

    def _read(self, text: str, start: int, end: int) -> tuple[list[Piece], str]:
        """Return the pieces between two places of the text, and the kind of its last word."""
        pieces: list[Piece] = []
        last = ""
        for at, token, value in self._lexer.get_tokens_unprocessed(text):
            kind = str(token)
            if at < end and (part := value[max(0, start - at) : end - at]):
                pieces.append(Piece(part, _style(kind)))
            if value and not value.isspace():
                last = kind
        return pieces, last


@cache
def _style(kind: str) -> str:
    name = kind.removeprefix("Token.")
    return next((style for prefix, style in _KINDS if name.startswith(prefix)), "")
