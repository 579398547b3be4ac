"""Streamed text of a model: wrapped at words, with basic Markdown.

``MarkdownStream`` takes increments and returns styled pieces to print at once; printed text never changes. It supports
headings, code, bold text, links and the indentation of lists, line by line. A table is held back until its last row, a
line of code until its end. It is not a complete Markdown renderer: everything else stays as the model wrote it.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from isthmus.record import record
from isthmus.terminal.screen.highlighting import HighlightLine
from isthmus.terminal.screen.pieces import LONGEST_LINK, Piece, link_pieces
from isthmus.terminal.screen.tables import TableStyle, drawn, is_delimiter, table_of
from isthmus.text.visible import visible_prose

_FENCE = re.compile(r"\s*(```|~~~)$")
_HEADING = re.compile(r" {0,3}#{1,6} $")
_LIST = re.compile(r"\s*(?:[-*+>]|\d{1,3}[.)]) +$")
_LEAD_CHARACTERS = frozenset("#`~-*+> 0123456789.)")
"""Characters at the start of a line that may determine its kind."""
_LONGEST_LEAD = 16
_LINK = re.compile(r"\[([^\[\]]+)\]\(([^()\s]+)\)")
LONGEST_TABLE = 64_000
"""Maximum number of characters of a table; a longer one stays as the model wrote it."""


@record
class Layout:
    """Layout of the text: ``width`` in cells (None: no wrapping), styles or not, and a function for a text's width.

    ``draws_tables``: tables are drawn, if there is a width; ``is_ascii``: with ASCII signs. ``highlighter`` returns the
    function that highlights code in a language, if it is known.
    """

    width: int | None
    is_styled: bool
    cell_width: Callable[[str], int]
    draws_tables: bool = False
    is_ascii: bool = False
    highlighter: Callable[[str], HighlightLine | None] = lambda _: None


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
        self._link = ""
        self._table: list[str] = []
        """Lines of a text that may be a table; the last one may be unfinished."""
        self._table_size = 0
        self._is_in_row = False
        self._info: str | None = None
        """Rest of the line that begins a block of code, so far."""
        self._highlight: HighlightLine | None = None
        self._code_line: list[str] | None = None
        """Line of code so far."""

    @property
    def cursor(self) -> int:
        """Cell of the cursor: 0 before anything is printed, else the one after the last character.

        Newlines are printed only when text follows them, so this is rarely 0.
        """
        return self._cursor

    def resize(self, width: int) -> None:
        """Lay out what follows in another width."""
        self._layout = replace(self._layout, width=width)

    def feed(self, text: str) -> list[Piece]:
        """Return the pieces that can be printed now."""
        if self._carriage_return:
            text, self._carriage_return = "\r" + text, False
        if text.endswith("\r"):
            text, self._carriage_return = text[:-1], True
        for character in visible_prose(text):
            if self._lead is None and character != "\n" and not self._table:
                self._add(character)
            else:
                self._read(character)
        return self._take()

    def _read(self, character: str) -> None:
        if self._table:
            self._add_to_table(character)
        elif character == "\n":
            self._end_line()
        elif self._lead is not None:
            self._add_to_lead(character)
        else:
            self._add(character)

    def flush(self) -> list[Piece]:
        """Return the text that is held back until its word is complete, for when the model pauses."""
        if self._lead is None and not self._marker and not self._table:
            self._put_word()
        return self._take()

    def finish(self) -> list[Piece]:
        """Return the remaining pieces with a final newline, and reset the stream for another text."""
        if self._table:
            self._end_table()
        self._settle_line()
        pieces = self._take()
        if self._has_content:
            pieces.append(Piece("\n"))
        self.__init__(self._layout)
        return pieces

    # --- Lines ------------------------------------------------------------------------------------------------------

    def _settle_line(self) -> None:
        """Print all that is held back of a line."""
        if self._lead and (self._fence or self._lead.strip()):
            self._resolve_lead()
        self._settle_link()
        self._settle_marker("")
        self._put_word()
        if self._info is not None:
            self._begin_code(self._info.strip())
        if self._code_line is not None:
            line, self._code_line = "".join(self._code_line), None
            for piece in self._highlight(line) if self._highlight is not None else [Piece(line, "code")]:
                self._put_piece(piece)

    def _end_line(self) -> None:
        self._settle_line()
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
        if character == "|" and self._draws_tables and not self._fence and not lead.strip():
            self._table, self._table_size, self._is_in_row = [lead + character], 0, True
            return
        self._resolve_lead()
        self._add(character)

    def _resolve_lead(self) -> None:
        """Decide on the kind of the line by its beginning, and print the beginning."""
        lead, self._lead = self._lead or "", None
        if fence := _FENCE.match(lead):
            begins = not self._fence
            if begins:
                self._fence = fence[1]
            elif fence[1] == self._fence:
                self._fence, self._highlight = "", None
            self._is_verbatim, self._line_style = True, "fence"
            if not self._layout.is_styled:
                self._put(lead, "fence")
            elif begins:
                self._info = ""
            elif not self._fence:
                self._put(self._rule, "fence")
            else:
                self._code_line = [lead]
        elif self._fence:
            self._is_verbatim, self._line_style = True, "code"
            if self._highlight is not None:
                self._code_line = [lead]
            elif lead:
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
            if self._info is not None:
                self._info += character
            elif self._code_line is not None:
                self._code_line.append(character)
            else:
                self._put(character, self._line_style)
            return
        if self._link:
            self._add_to_link(character)
            return
        if character == "[" and self._layout.is_styled and not self._code:
            self._settle_marker(character)
            self._link = character
            return
        self._add_text(character)

    def _add_to_link(self, character: str) -> None:
        """Hold back a link until its end, or until it cannot become one."""
        self._link += character
        if character == ")" and (found := _LINK.fullmatch(self._link)):
            self._link = ""
            for piece in link_pieces(found[1], found[2]):
                self._add_piece(piece)
            return
        before = self._link[-2:-1]
        is_text = "](" not in self._link
        may_go_on = (
            character != "[" and not (is_text and before == "]")
            if is_text
            else character not in " \t()" or before == "]"
        )
        if not may_go_on or len(self._link) > LONGEST_LINK:
            self._settle_link()

    def _settle_link(self) -> None:
        """Print what looked like the beginning of a link."""
        link, self._link = self._link, ""
        for character in link:
            self._add_text(character)

    def _add_piece(self, piece: Piece) -> None:
        """Add styled text in words."""
        for character in piece.text:
            self._add_character(Piece(character, piece.style or self._style(), piece.link))

    def _add_text(self, character: str) -> None:
        if self._layout.is_styled and (character in "*`" and not (self._code and character == "*")):
            if self._marker and self._marker[0] != character:
                self._settle_marker(character)
            self._marker += character
            return
        if self._marker:
            self._settle_marker(character)
        self._add_character(Piece(character, self._style() if self._code or self._strong else self._line_style))

    def _add_character(self, piece: Piece) -> None:
        character = self._previous = piece.text
        if character in " \t":
            self._put_word()
            self._spaces += character if character == " " else "    "
            return
        width = self._layout.cell_width(character)
        if width > 1:
            # Scripts without spaces may break anywhere.
            self._put_word()
        self._word.append(piece)
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
            self._put_piece(piece)
        self._word.clear()
        self._word_width, self._spaces = 0, ""

    # --- Blocks -----------------------------------------------------------------------------------------------------

    @property
    def _rule(self) -> str:
        return ("-" if self._layout.is_ascii else "─") * 3

    @property
    def _draws_tables(self) -> bool:
        return self._layout.draws_tables and self._layout.width is not None

    def _begin_code(self, info: str) -> None:
        """Print a rule with the language in place of the fence."""
        self._info = None
        language = info.split()[0].strip("{}.") if info else ""
        self._highlight = self._layout.highlighter(language)
        self._put(f"{self._rule} {info}".rstrip(), "fence")

    def _add_to_table(self, character: str) -> None:
        self._table_size += 1
        if self._is_in_row:
            if self._table_size > LONGEST_TABLE:
                self._end_table(as_text=True)
                self._read(character)
            elif character != "\n":
                self._table[-1] += character
            elif len(self._table) == 2 and not is_delimiter(self._table[1]):
                self._end_table()
                self._end_line()
            else:
                self._is_in_row = False
                self._table.append("")
        elif character == "|" and len(self._table[-1]) < _LONGEST_LEAD:
            self._table[-1] += character
            self._is_in_row = True
        elif character == " " and len(self._table[-1]) < _LONGEST_LEAD:
            self._table[-1] += character
        else:
            lead = self._table.pop()
            self._end_table()
            self._end_line()
            for part in lead + character:
                self._read(part)

    def _end_table(self, *, as_text: bool = False) -> None:
        """Print the table, or the text that looked like the beginning of one; the cursor stays in its last line."""
        lines, self._table = self._table, []
        is_complete = not self._is_in_row
        self._is_in_row = False
        if is_complete and lines and not lines[-1].strip():
            lines.pop()
        table = None if as_text else table_of(lines)
        self._lead = None
        if table is None or self._layout.width is None:
            for number, line in enumerate(lines):
                if number:
                    self._end_line()
                    self._lead = None
                for character in line:
                    self._add(character)
            return
        indent = len(lines[0]) - len(lines[0].lstrip(" "))
        style = TableStyle(
            self._layout.width, indent, self._layout.is_styled, self._layout.is_ascii, self._layout.cell_width
        )
        for number, row in enumerate(drawn(table, style)):
            if number:
                self._newlines += 1
                self._column = 0
            for piece in row:
                self._put_piece(piece)

    def _put_piece(self, piece: Piece) -> None:
        self._put(piece.text, piece.style, piece.link)

    def _put(self, text: str, style: str, link: str = "") -> None:
        if not text:
            return
        if self._newlines:
            # At most one empty line outside code, and none at the end of the text.
            count = self._newlines if self._fence and style != "fence" else min(self._newlines, 2)
            self._out.append(Piece("\n" * count))
            self._newlines = 0
        self._has_content = True
        self._out.append(Piece(text, style, link))
        self._column += self._layout.cell_width(text)
        if self._layout.width is not None and self._column > self._layout.width:
            self._column = (self._column - 1) % self._layout.width + 1
        self._cursor = self._column

    def _take(self) -> list[Piece]:
        """Return the collected pieces, with adjacent ones of the same style joined."""
        joined: list[Piece] = []
        for piece in self._out:
            if joined and joined[-1].style == piece.style and joined[-1].link == piece.link:
                joined[-1] = piece._replace(text=joined[-1].text + piece.text)
            else:
                joined.append(piece)
        self._out.clear()
        return joined
