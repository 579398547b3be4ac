"""Streamed text of a model: wrapped at words, with basic Markdown.

``MarkdownStream`` takes increments and returns styled pieces to print at once; printed text never changes. It supports
headings, code, bold text and the indentation of lists, line by line. It is not a Markdown renderer: tables, links and
everything else stay as the model wrote them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from isthmus.text.visible import visible_prose


class Piece(NamedTuple):
    """Text to print unchanged. ``style`` is one of "", "heading", "strong", "code", "fence"."""

    text: str
    style: str = ""


_FENCE = re.compile(r"\s*(```|~~~)$")
_HEADING = re.compile(r" {0,3}#{1,6} $")
_LIST = re.compile(r"\s*(?:[-*+>]|\d{1,3}[.)]) +$")
_LEAD_CHARACTERS = frozenset("#`~-*+> 0123456789.)")
"""Characters at the start of a line that may determine its kind."""
_LONGEST_LEAD = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of the text: ``width`` in cells (None: no wrapping), styles or not, and a function for a text's width."""

    width: int | None
    is_styled: bool
    cell_width: Callable[[str], int]


class MarkdownStream:
    """One text of the model. The pieces do not depend on how it is split into increments, except after ``flush``."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._out: list[Piece] = []
        self._lead: str | None = ""
        self._newlines = 0
        self._has_content = False
        self._carriage_return = False
        self._column = 0
        self._cursor = 0
        self._indent = 0
        self._spaces = ""
        self._word: list[Piece] = []
        self._word_width = 0
        self._line_style = ""
        self._fence = ""
        self._is_verbatim = False
        self._strong = False
        self._code = False
        self._marker = ""
        self._previous = ""

    @property
    def cursor(self) -> int:
        """Cell of the cursor: 0 before anything is printed, else the one after the last character.

        Newlines are printed only when text follows them, so this is rarely 0.
        """
        return self._cursor

    def feed(self, text: str) -> list[Piece]:
        """Return the pieces that can be printed now."""
        if self._carriage_return:
            text, self._carriage_return = "\r" + text, False
        if text.endswith("\r"):
            text, self._carriage_return = text[:-1], True
        for character in visible_prose(text):
            if character == "\n":
                self._end_line()
            elif self._lead is not None:
                self._add_to_lead(character)
            else:
                self._add(character)
        return self._take()

    def flush(self) -> list[Piece]:
        """Return the text that is held back until its word is complete, for when the model pauses."""
        if self._lead is None and not self._marker:
            self._put_word()
        return self._take()

    def finish(self) -> list[Piece]:
        """Return the remaining pieces with a final newline, and reset the stream for another text."""
        if self._lead and (self._fence or self._lead.strip()):
            self._resolve_lead()
        self._settle_marker("")
        self._put_word()
        pieces = self._take()
        if self._has_content:
            pieces.append(Piece("\n"))
        self.__init__(self._layout)
        return pieces

    # --- Lines ------------------------------------------------------------------------------------------------------

    def _end_line(self) -> None:
        if self._lead and (self._fence or self._lead.strip()):
            self._resolve_lead()
        self._settle_marker("")
        self._put_word()
        if self._has_content:
            self._newlines += 1
        self._column = self._indent = 0
        self._spaces, self._line_style, self._lead = "", "", ""
        self._strong = self._code = False
        self._is_verbatim = False
        self._previous = ""

    def _add_to_lead(self, character: str) -> None:
        lead = self._lead or ""
        is_open = character in _LEAD_CHARACTERS and len(lead) < _LONGEST_LEAD
        if is_open and not (character == " " and lead.strip()):
            self._lead = lead + character
            if _FENCE.match(self._lead):
                self._resolve_lead()
            return
        if character == " " and is_open:
            self._lead = lead + character
            self._resolve_lead()
            return
        self._resolve_lead()
        self._add(character)

    def _resolve_lead(self) -> None:
        """Decide on the kind of the line by its beginning, and print the beginning."""
        lead, self._lead = self._lead or "", None
        if fence := _FENCE.match(lead):
            if not self._fence:
                self._fence = fence[1]
            elif fence[1] == self._fence:
                self._fence = ""
            self._is_verbatim, self._line_style = True, "fence"
            self._put(lead, "fence")
        elif self._fence:
            self._is_verbatim, self._line_style = True, "code"
            if lead:
                self._put(lead, "code")
        elif _HEADING.match(lead):
            self._line_style = "heading"
            self._put(lead if not self._layout.is_styled else "", "heading")
        elif _LIST.match(lead):
            self._put(lead, "")
            self._indent = self._column
        else:
            stripped = lead.lstrip(" ")
            if spaces := lead[: len(lead) - len(stripped)]:
                self._put(spaces, "")
                self._indent = self._column
            for character in stripped:
                self._add(character)

    # --- Words ------------------------------------------------------------------------------------------------------

    def _add(self, character: str) -> None:
        if self._is_verbatim:
            self._put(character, self._line_style)
            return
        if self._layout.is_styled and (character in "*`" and not (self._code and character == "*")):
            if self._marker and self._marker[0] != character:
                self._settle_marker(character)
            self._marker += character
            return
        self._settle_marker(character)
        self._previous = character
        if character in " \t":
            self._put_word()
            self._spaces += character if character == " " else "    "
            return
        width = self._layout.cell_width(character)
        if width > 1:
            # Scripts without spaces may break anywhere.
            self._put_word()
        self._word.append(Piece(character, self._style()))
        self._word_width += width
        limit = self._layout.width
        if width > 1 or limit is None or self._word_width >= limit - self._indent:
            self._put_word()

    def _settle_marker(self, following: str) -> None:
        """Decide by the character that follows whether the collected markers are emphasis or literal."""
        marker, self._marker = self._marker, ""
        if not marker:
            return
        if marker[0] == "`":
            self._code = not self._code
            self._previous = "`"
            return
        opens = not self._strong and following.strip() != ""
        closes = self._strong and self._previous.strip() != ""
        if len(marker) == 2 and (opens or closes):
            self._strong = not self._strong
            return
        for character in marker:
            self._word.append(Piece(character, self._style()))
            self._word_width += 1
        self._previous = marker

    def _style(self) -> str:
        if self._code:
            return "code"
        return "strong" if self._strong and not self._line_style else self._line_style

    def _put_word(self) -> None:
        if not self._word:
            return
        width, spaces = self._layout.width, self._spaces
        if width is not None and self._column > self._indent:
            is_full = self._column + len(spaces) + self._word_width > width
            if is_full and self._word_width <= width - self._indent:
                self._out.append(Piece("\n" + " " * self._indent))
                self._column, spaces = self._indent, ""
        if spaces:
            self._put(spaces, "")
        for piece in self._word:
            self._put(piece.text, piece.style)
        self._word.clear()
        self._word_width, self._spaces = 0, ""

    def _put(self, text: str, style: str) -> None:
        if not text:
            return
        if self._newlines:
            # At most one empty line outside code, and none at the end of the text.
            count = self._newlines if self._fence and style != "fence" else min(self._newlines, 2)
            self._out.append(Piece("\n" * count))
            self._newlines = 0
        self._has_content = True
        self._out.append(Piece(text, style))
        self._column += self._layout.cell_width(text)
        if self._layout.width is not None and self._column > self._layout.width:
            self._column = (self._column - 1) % self._layout.width + 1
        self._cursor = self._column

    def _take(self) -> list[Piece]:
        """Return the collected pieces, with adjacent ones of the same style joined."""
        joined: list[Piece] = []
        for piece in self._out:
            if joined and joined[-1].style == piece.style:
                joined[-1] = Piece(joined[-1].text + piece.text, piece.style)
            else:
                joined.append(piece)
        self._out.clear()
        return joined
