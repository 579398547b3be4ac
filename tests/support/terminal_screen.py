"""The screen of a terminal: pyte's, which shows what programs write, with the usual text drawn at once.

pyte draws character by character and looks up the width of each, which took more processor time than some of the
programs that tests look at. The bytes are read by :mod:`support.pty_program`.
"""

from typing import Any

import pyte
import pyte.charsets
import pyte.modes
import pyte.screens
from wcwidth import wcwidth


class _Cells(dict[str, "pyte.screens.Char"]):
    """Cells with characters of one column in one style, by character. Others raise KeyError."""

    def __init__(self, style: "pyte.screens.Char") -> None:
        self._style = style

    def __missing__(self, char: str) -> "pyte.screens.Char":
        if wcwidth(char) != 1:
            raise KeyError(char)
        cell = self[char] = self._style._replace(data=char)
        return cell


class TerminalScreen(pyte.Screen):
    """pyte's screen, in less time."""

    def __init__(self, columns: int, rows: int) -> None:
        self._cells: dict[pyte.screens.Char, _Cells] = {}
        super().__init__(columns, rows)

    @property
    def display(self) -> list[str]:
        """The lines of the screen; the second column of a wide character is empty."""
        columns = range(self.columns)
        lines = (self.buffer[row] for row in range(self.lines))
        return ["".join([line[column].data for column in columns]) for line in lines]

    def draw(self, data: str) -> None:
        """Draw text at the cursor."""
        # pyte drops all text that follows a variation selector in the same piece.
        data = data.replace("\N{VARIATION SELECTOR-15}", "").replace("\N{VARIATION SELECTOR-16}", "")
        cursor, charset = self.cursor, self.g1_charset if self.charset else self.g0_charset
        end = cursor.x + len(data)
        if charset is pyte.charsets.LAT1_MAP and pyte.modes.IRM not in self.mode and end <= self.columns:
            known = self._cells.get(cursor.attrs)
            if known is None:
                known = self._cells[cursor.attrs] = _Cells(cursor.attrs)
            try:
                cells = [known[char] for char in data]
            except KeyError:
                pass
            else:
                self.buffer[cursor.y].update(zip(range(cursor.x, end), cells, strict=True))
                self.dirty.add(cursor.y)
                cursor.x = end
                return
        super().draw(data)

    def reflow(self, rows: int, columns: int) -> None:
        """Change the size as most terminals do: rows that are too long go on in further ones, with the cursor."""
        shown: list[dict[int, pyte.screens.Char]] = []
        cursor_row, cursor_column = 0, 0
        for at in range(self.lines):
            cells = dict(self.buffer[at])
            width = max((column + 1 for column, cell in cells.items() if cell.data.strip()), default=0)
            if at == self.cursor.y:
                behind = self.cursor.x - 1 if self.cursor.x and self.cursor.x >= width else self.cursor.x
                cursor_row, cursor_column = len(shown) + behind // columns, self.cursor.x % columns
            for start in range(0, max(1, width), columns):
                shown.append(
                    {column - start: cells[column] for column in range(start, start + columns) if column in cells}
                )
        lost = max(0, cursor_row - rows + 1)
        self.resize(rows, columns)
        for at in range(rows):
            self.buffer[at].clear()
            self.buffer[at].update(shown[at + lost] if at + lost < len(shown) else {})
        self.cursor.y, self.cursor.x = cursor_row - lost, cursor_column
        self.dirty.update(range(rows))

    def select_graphic_rendition(self, *attrs: int, private: bool = False, **more: Any) -> None:
        """Set the style of what is drawn next."""
        # The private form (CSI > 4 ; 2 m) is xterm's modifyOtherKeys; pyte takes it for a colour and fails.
        if not private:
            super().select_graphic_rendition(*attrs, **more)
