"""A prompt that is drawn anew for another width, with and without the signal that the width has changed."""

import io
from collections.abc import Generator
from contextlib import contextmanager

import pyte
import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output.vt100 import Vt100_Output

from isthmus.terminal.prompt.reflowing_renderer import make_reflowing
from support.terminal_screen import TerminalScreen

pytestmark = pytest.mark.anyio

TYPED = " ".join(f"word{at}" for at in range(18))
WIDE, NARROW = Size(rows=24, columns=100), Size(rows=24, columns=44)


class _Terminal:
    """A terminal that wraps its lines anew. After each question for its size it gets the next of `changes`."""

    def __init__(self) -> None:
        self._screen = TerminalScreen(WIDE.columns, WIDE.rows)
        self._stream = pyte.Stream(self._screen)
        self._written = io.StringIO()
        self.changes: list[Size] = []
        self.size = WIDE
        self.output = Vt100_Output(self._written, self._size, enable_cpr=False)

    def resize(self, size: Size) -> None:
        self._show()
        self._screen.reflow(size.rows, size.columns)
        self.size = size

    def prompts(self) -> int:
        self._show()
        return sum(line.startswith("> word0") for line in self._screen.display)

    def _size(self) -> Size:
        size = self.size
        if self.changes:
            self.resize(self.changes.pop(0))
        return size

    def _show(self) -> None:
        self.output.flush()
        self._stream.feed(self._written.getvalue())
        self._written.seek(0)
        self._written.truncate()


@contextmanager
def _prompting(terminal: _Terminal) -> Generator[Application[str]]:
    """Open a prompt with a long text, with the cursor behind it."""
    with create_app_session(DummyInput(), terminal.output):
        session = PromptSession[str]("> ")
        make_reflowing(session)
        session.default_buffer.insert_text(TYPED)
        yield session.app


@pytest.mark.parametrize("is_signalled", [False, True], ids=["before the signal", "after the signal"])
async def test_a_drawing_for_another_width_leaves_no_prompt_behind(is_signalled: bool) -> None:
    terminal = _Terminal()
    with _prompting(terminal) as app:
        _draw(app)
        for size in (NARROW, WIDE, NARROW):
            terminal.resize(size)
            if is_signalled:
                app.renderer.erase()
            _draw(app)
            assert terminal.prompts() == 1


async def test_a_width_that_changes_while_a_prompt_is_drawn_counts_at_the_next_drawing() -> None:
    terminal = _Terminal()
    with _prompting(terminal) as app:
        _draw(app)
        terminal.changes = [NARROW]
        _draw(app)
        _draw(app)
        assert terminal.prompts() == 1


def _draw(app: Application[str]) -> None:
    with set_app(app):
        app.renderer.render(app, app.layout)
