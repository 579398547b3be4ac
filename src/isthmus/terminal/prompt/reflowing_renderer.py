"""Prompts of prompt_toolkit that leave nothing behind when the window becomes narrower.

Imports prompt_toolkit, so import this module only to prompt.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.layout.layout import Layout
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.shortcuts import PromptSession
from typing_extensions import override

from isthmus.terminal.screen.reflow import rows_above_cursor

if TYPE_CHECKING:
    from prompt_toolkit.output import Output


class ReflowingRenderer(Renderer):
    """A renderer for terminals that wrap the lines on the screen anew; the rows above the cursor become more."""

    @override
    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        # A key or a timer may redraw between the change of the size and its signal: the rows that were drawn for the
        # old size go first. The size stays one for the whole drawing, so that the next one knows what this was for.
        with self._one_size() as size:
            if self._last_size is not None and self._last_size != size:
                self.erase(leave_alternate_screen=False)
            super().render(app, layout, is_done)

    @override
    def erase(self, leave_alternate_screen: bool = True) -> None:
        with self._one_size() as size:
            drawn, last = self._last_screen, self._last_size
            if drawn is not None and last is not None and size.columns < last.columns:
                cursor = self._cursor_pos
                widths = [_width(drawn.data_buffer[row]) for row in range(cursor.y + 1)]
                rows = rows_above_cursor(widths, cursor.x, size.columns)
                self._cursor_pos = Point(x=cursor.x, y=min(rows, size.rows - 1))
            super().erase(leave_alternate_screen)

    @contextmanager
    def _one_size(self) -> Generator[Size]:
        """Read the window's size once; the output says the same until the end."""
        output = self.output
        size = output.get_size()
        self.output = _sized(output, size)
        try:
            yield size
        finally:
            self.output = output


def make_reflowing(session: PromptSession[str]) -> None:
    """Let a prompt be drawn by a :class:`ReflowingRenderer`."""
    app = session.app
    app.renderer = ReflowingRenderer(
        app.renderer.style, app.output, cpr_not_supported_callback=app.cpr_not_supported_callback
    )


class _SizedOutput:
    """An output with a size that does not change; all else is the other output's."""

    def __init__(self, output: "Output", size: Size) -> None:
        self._output = output
        self._size = size

    def get_size(self) -> Size:
        return self._size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)


def _sized(output: "Output", size: Size) -> "Output":
    sized: Any = _SizedOutput(output, size)
    return sized


def _width(row: "dict[int, object]") -> int:
    """Return the number of cells up to the last one with something to see."""
    return max((column + 1 for column, cell in row.items() if getattr(cell, "char", " ").strip()), default=0)
