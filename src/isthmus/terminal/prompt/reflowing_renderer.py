"""Prompts of prompt_toolkit that leave nothing behind when the window becomes narrower.

Imports prompt_toolkit, so import this module only to prompt.
"""

from prompt_toolkit.data_structures import Point
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.shortcuts import PromptSession
from typing_extensions import override

from isthmus.terminal.screen.reflow import rows_above_cursor


class ReflowingRenderer(Renderer):
    """A renderer for terminals that wrap the lines on the screen anew; the rows above the cursor become more."""

    @override
    def erase(self, leave_alternate_screen: bool = True) -> None:
        drawn, size = self._last_screen, self._last_size
        columns = self.output.get_size().columns
        if drawn is not None and size is not None and columns < size.columns:
            cursor = self._cursor_pos
            widths = [_width(drawn.data_buffer[row]) for row in range(cursor.y + 1)]
            rows = rows_above_cursor(widths, cursor.x, columns)
            self._cursor_pos = Point(x=cursor.x, y=min(rows, self.output.get_size().rows - 1))
        super().erase(leave_alternate_screen)


def make_reflowing(session: PromptSession[str]) -> None:
    """Let a prompt be drawn by a :class:`ReflowingRenderer`."""
    app = session.app
    app.renderer = ReflowingRenderer(
        app.renderer.style, app.output, cpr_not_supported_callback=app.cpr_not_supported_callback
    )


def _width(row: "dict[int, object]") -> int:
    """Return the number of cells up to the last one with something to see."""
    return max((column + 1 for column, cell in row.items() if getattr(cell, "char", " ").strip()), default=0)
