"""The terminal as a sequence of blocks: text that stays, and below it live lines that are redrawn in place.

The interactive front prints everything through one ``Screen``. It puts one empty line between blocks of different
kinds, and removes the live lines before anything else is printed. Live lines, colours and wrapping need a terminal.
Imports rich, so import this module only to draw.
"""

import base64
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.style import Style
from rich.text import Text
from rich.theme import Theme

from isthmus.record import record
from isthmus.terminal.screen.highlighting import highlighter
from isthmus.terminal.screen.markdown import Layout, MarkdownStream
from isthmus.terminal.screen.pieces import Piece
from isthmus.terminal.screen.reflow import reflows, rows_of_line
from isthmus.terminal.screen.themes import STYLES, ColourTheme, styles
from isthmus.terminal.screen.wrapping import wrapped

MINIMUM_WIDTH = 20
MAXIMUM_WIDTH = 100_000
LINK_PROGRAMS = frozenset({"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio"})
"""Values of TERM_PROGRAM of terminals that show links in text."""
LINK_TERMS = ("xterm-kitty", "foot", "alacritty", "wezterm", "xterm-ghostty", "contour")
"""Beginnings of TERM of such terminals."""
BEGIN_FRAME, END_FRAME = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output: the terminal draws what is between them at once. Terminals without it ignore both."""
MAXIMUM_COPIED_BYTES = 75_000
"""Maximum size of a text for the clipboard: some terminals drop longer sequences."""


@record
class Glyphs:
    """Signs in front of lines; see ASCII for terminals with another encoding than UTF-8."""

    done: str = "✓"
    failed: str = "✗"
    cancelled: str = "\u2013"
    waiting: str = "?"
    thought: str = "∙"
    prompt: str = "\u203a"
    dot: str = "·"
    ellipsis: str = "…"
    spinner: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


ASCII = Glyphs("+", "x", "-", "?", ".", ">", "-", "...", "|/-\\")


class Screen:
    """Prints to ``output``; ``is_terminal`` is detected if None. Respects NO_COLOR and TERM."""

    def __init__(self, output: TextIO, *, is_terminal: bool | None = None, width: int | None = None) -> None:
        self._output = output
        self._has_own_theme = False
        self.console = Console(
            file=output,
            force_terminal=is_terminal,
            width=width,
            theme=Theme(dict(STYLES), inherit=False),
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=True,
            legacy_windows=False,
        )
        self.is_live = self.console.is_terminal and not self.console.is_dumb_terminal
        self._allows_colours = not self.console.no_color
        encoding = (getattr(output, "encoding", None) or "utf-8").lower()
        self.glyphs = Glyphs() if encoding.startswith("utf") else ASCII
        self._shows_links = self.is_live and _shows_links(os.environ)
        self._reflows = reflows(os.environ)
        self._live_widths: list[int] = []
        self._live_column = 0
        self._last_kind = ""
        self._is_empty = True
        self._markdown: MarkdownStream | None = None

    @property
    def width(self) -> int:
        """Current width of a line in cells."""
        return max(MINIMUM_WIDTH, self.console.width)

    @property
    def height(self) -> int:
        """Current number of rows."""
        return self.console.height

    def fitted(self, text: str, indent: int) -> str:
        """Return the line of text, cut to fit behind an indent."""
        room = self.width - indent
        if cell_len(text) <= room:
            return text
        room = max(0, room - cell_len(self.glyphs.ellipsis))
        text = text[:room]
        while cell_len(text) > room:
            text = text[:-1]
        return f"{text}{self.glyphs.ellipsis}"

    @property
    def is_mid_text(self) -> bool:
        """Whether a text is being written and its line is not finished."""
        return self._markdown is not None and self._markdown.cursor > 0

    @property
    def is_in_text(self) -> bool:
        """Whether a text is being written and has not ended."""
        return self._markdown is not None

    @property
    def colour_limit(self) -> str | None:
        """Reason why a theme's colours are not shown as they are; None if they are."""
        if not self._allows_colours:
            return "NO_COLOR is set, so no colours are shown."
        if self.console.color_system not in ("256", "truecolor"):
            return "This terminal does not say that it has 256 colours, so its own are used."
        return None

    def use_theme(self, theme: ColourTheme) -> ColourTheme:
        """Use the colours of a theme from now on; return the theme that this terminal can show."""
        if theme is not ColourTheme.NONE and self.colour_limit is not None:
            theme = ColourTheme.AUTO if self._allows_colours else ColourTheme.NONE
        if self._has_own_theme:
            self.console.pop_theme()
        self.console.push_theme(Theme(dict(styles(theme)), inherit=False), inherit=False)
        self._has_own_theme = True
        self.console.no_color = theme is ColourTheme.NONE
        return theme

    def show_sample(self) -> None:
        """Print a line in the styles of the theme."""
        sample = (("+ added", "added"), ("- removed", "removed"), ("keyword", "keyword"), ('"text"', "string"))
        more = (("name()", "name"), ("42", "literal"), ("# comment", "comment"), ("quiet", "quiet"), ("failed", "bad"))
        self.block("sample", [Text("  ").join(Text(text, style) for text, style in (*sample, *more))])

    # --- What stays -------------------------------------------------------------------------------------------------

    def block(self, kind: str, lines: Iterable[Text]) -> None:
        """Print whole lines, after an empty line if the previous block was of another kind.

        On a terminal, lines that are too long are wrapped at words.
        """
        self.end_text()
        with self._frame():
            self._erase_live()
            self._begin_block(kind)
            for line in lines:
                for row in wrapped(line, self.width) if self.console.is_terminal else [line]:
                    self.console.print(row)

    def write(self, increment: str) -> None:
        """Print more of a text of the model."""
        if self._markdown is None:
            is_styled = self.console.is_terminal and not self.console.no_color and self.is_live
            layout = Layout(
                self.width if self.console.is_terminal else None,
                is_styled,
                cell_len,
                draws_tables=self.is_live,
                is_ascii=self.glyphs is ASCII,
                highlighter=highlighter,
            )
            self._markdown = MarkdownStream(layout)
        elif self.console.is_terminal:
            self._markdown.resize(self.width)
        self._print_pieces(self._markdown.feed(increment))

    def flush_text(self) -> None:
        """Print the word that may not be complete yet."""
        if self._markdown is not None:
            self._print_pieces(self._markdown.flush())

    def end_text(self) -> None:
        """Complete the text; the next output starts a line."""
        if self._markdown is not None:
            pieces, self._markdown = self._markdown.finish(), None
            self._print_pieces(pieces)

    def separate(self) -> None:
        """Put an empty line before the next output."""
        self._last_kind = "-"

    def join(self, kind: str) -> None:
        """Allow a block of this kind to follow without an empty line."""
        self._last_kind = kind

    def forget_position(self) -> None:
        """Assume the cursor at the start of a line, after something else (a prompt) wrote to the terminal."""
        self._live_widths = []
        self._last_kind, self._is_empty = "-", False

    def copy(self, text: str) -> None:
        """Ask the terminal to put a text into its clipboard; does nothing without a terminal."""
        if self.is_live:
            data = base64.b64encode(text.encode("utf-8", "replace")[:MAXIMUM_COPIED_BYTES]).decode()
            self._output.write(f"\x1b]52;c;{data}\x07")
            self._output.flush()

    def clear(self) -> None:
        """Empty the screen."""
        self.console.clear()
        self._live_widths, self._last_kind, self._is_empty = [], "", True

    # --- What is redrawn --------------------------------------------------------------------------------------------

    def live(self, lines: Sequence[Text]) -> None:
        """Show these lines below everything, in place of the previous ones; a text may continue afterwards."""
        if not self.is_live:
            return
        column = self._markdown.cursor if self._markdown is not None else 0
        if column >= self.width:
            lines = []  # the cursor is in the last cell, to which it could not return
        with self._frame():
            self._erase_live()
            if not lines:
                return
            if column:
                self.console.print()
            self._live_column = column
            shown = [Text(), *lines] if not self._is_empty else lines
            for line in shown[-max(1, self.console.height - 3) :]:
                # One cell stays free: after a full line some terminals start another.
                line.truncate(self.width - 1, overflow="ellipsis")
                self._live_widths.append(line.cell_len)
                self.console.print(line)

    def control(self, sequence: str) -> None:
        """Send a control sequence that neither prints nor moves the cursor."""
        if self.is_live and sequence:
            self._output.write(sequence)
            self._output.flush()

    def cursor(self, *, is_shown: bool) -> None:
        """Show or hide the cursor."""
        if self.is_live:
            self.console.show_cursor(is_shown)

    def _erase_live(self) -> None:
        if not self._live_widths:
            return
        # If the window has become narrower since, the lines take more rows.
        columns = self.width if self._reflows else MAXIMUM_WIDTH
        rows = sum(rows_of_line(width, columns) for width in self._live_widths)
        self._live_widths = []
        up: list[tuple[ControlType, int]] = [(ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)]
        self.console.control(Control(ControlType.CARRIAGE_RETURN, *up * rows))
        if self._live_column:
            back = (ControlType.CURSOR_UP, 1), (ControlType.CURSOR_MOVE_TO_COLUMN, self._live_column)
            self.console.control(Control(*back))
            self._live_column = 0

    # --- Inside -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _frame(self) -> Generator[None]:
        """Collect what is printed; if live lines are redrawn by it, the user sees all of it at once."""
        is_redrawn = bool(self._live_widths)
        if is_redrawn:
            self._output.write(BEGIN_FRAME)
        with self.console:
            yield
        if is_redrawn:
            self._output.write(END_FRAME)
            self._output.flush()

    def _begin_block(self, kind: str) -> None:
        if not self._is_empty and self._last_kind not in (kind, ""):
            self.console.print()
        self._last_kind, self._is_empty = kind, False

    def _print_pieces(self, pieces: Sequence[Piece]) -> None:
        if not pieces:
            return
        with self._frame():
            self._erase_live()
            if self._last_kind != "text" or self._is_empty:
                self._begin_block("text")
            for piece in pieces:
                text = Text(piece.text, piece.style)
                if piece.link and self._shows_links:
                    text.stylize(Style(link=piece.link))
                self.console.print(text, end="")
        self._output.flush()


def _shows_links(variables: Mapping[str, str]) -> bool:
    """Return whether the terminal is known for links in text (OSC 8); others may print the sequence."""
    if variables.get("TERM", "").startswith(("screen", "linux", "eterm", "dumb")) or "STY" in variables:
        return False
    if variables.get("TERM_PROGRAM") in LINK_PROGRAMS or variables.get("TERM", "").startswith(LINK_TERMS):
        return True
    vte = variables.get("VTE_VERSION", "")
    return "WT_SESSION" in variables or (vte.isdecimal() and int(vte) >= 5000)
