"""Highlighted code, line by line, by Pygments, which is imported when the first code comes.

A lexer sees one line after another, and the lines before it only while they leave something open, such as a string over
several lines. So the work per line does not grow with the code. Not a style: the kinds of words are named, and
``screen`` gives them colours.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from isthmus.terminal.pieces import Piece

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
        self._closed_kind = self._kind_at_end(_PROBE)

    def __call__(self, line: str) -> list[Piece]:
        if len(line) > LONGEST_LINE:
            self._open.clear()
            return [Piece(line, "code")]
        before = "".join(f"{earlier}\n" for earlier in self._open)
        whole = f"{before}{line}\n{_PROBE}"
        pieces = list(self._within(whole, len(before), len(before) + len(line)))
        if self._kind_at_end(whole) == self._closed_kind:
            self._open.clear()
        elif len(self._open) < OPEN_LINES:
            self._open.append(line)
        else:
            self._open = [line]
        return pieces

    def _within(self, text: str, start: int, end: int) -> Iterator[Piece]:
        for at, kind, value in self._lexer.get_tokens_unprocessed(text):
            part = value[max(0, start - at) : max(0, end - at)]
            if part:
                yield Piece(part, _style(str(kind)))

    def _kind_at_end(self, text: str) -> str:
        kind = ""
        for _, token, value in self._lexer.get_tokens_unprocessed(text):
            if value.strip():
                kind = str(token)
        return kind


def _style(kind: str) -> str:
    name = kind.removeprefix("Token.")
    return next((style for prefix, style in _KINDS if name.startswith(prefix)), "")
