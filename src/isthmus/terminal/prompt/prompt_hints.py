"""Hints below the prompt, for prompt_toolkit: what a command or a reference can become, and notes to the user.

Imports prompt_toolkit, so import this module only to prompt.
"""

import asyncio
import textwrap
from collections.abc import Callable, Sequence

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, is_done
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.containers import ConditionalContainer, HSplit, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.shortcuts import PromptSession

from isthmus.terminal.prompt.prompt_completer import MAXIMUM_HINTS, REFERENCE, PromptCompleter
from isthmus.text.visible import with_ellipsis

ASK_AGAIN_SECONDS = 0.5
"""Time in seconds after which an agent that still looks for completions is asked again."""


class PromptHints:
    """The hints of one prompt, whose layout gets a window for them. ``columns`` is the width of the terminal."""

    def __init__(self, prompt: PromptSession[str], columns: Callable[[], int]) -> None:
        self.completer: PromptCompleter | None = None
        self._prompt = prompt
        self._columns = columns
        self._shown: Sequence[str] = ()
        self._rows = 0
        """Maximum number of hints that were shown at once below this prompt."""
        self._looking: asyncio.Task[None] | None = None
        prompt.default_buffer.on_text_changed += self.look_ahead
        window = Window(FormattedTextControl(self._lines), dont_extend_height=True, height=Dimension(max=MAXIMUM_HINTS))
        shown = ConditionalContainer(window, Condition(lambda: bool(self._shown)) & ~is_done)
        prompt.layout.container = HSplit([prompt.layout.container, shown])

    def begin(self) -> None:
        """Begin a prompt without hints."""
        self._shown, self._rows = (), 0

    def note(self, text: str) -> None:
        """Show a note until the text of the prompt changes."""
        self._stop_looking()
        self._show(textwrap.wrap(text, max(self._columns() - 3, 1)))

    def look_ahead(self, buffer: Buffer) -> None:
        """Show, while a reference or a command is typed, what it can become."""
        self._stop_looking()
        is_hinted = "@" in buffer.text or buffer.text.startswith("/")
        if self._shown or (self.completer is not None and is_hinted):
            self._looking = self._prompt.app.create_background_task(self._look(buffer, self.completer))

    def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self, buffer: Buffer, completer: PromptCompleter | None) -> None:
        # The cursor moves after this was called.
        await asyncio.sleep(0)
        line = buffer.document.text_before_cursor
        while True:
            hints: Sequence[str] = ()
            if completer is not None:
                if completer.has_to_ask(line):
                    await completer.ask(line)
                hints = completer.hints(line) if line.startswith("/") or REFERENCE.search(line) else ()
            if hints != self._shown:
                self._show(hints)
            if completer is None or not completer.is_partial(line):
                return
            await asyncio.sleep(ASK_AGAIN_SECONDS)

    def _show(self, hints: Sequence[str]) -> None:
        self._shown = hints
        self._rows = max(self._rows, len(hints))
        self._prompt.app.invalidate()

    def _lines(self) -> StyleAndTextTuples:
        width = self._columns() - 1
        # Toolkit keeps the height: without blank lines after them, fewer hints would stand away from the prompt.
        blank = [""] * (self._rows - len(self._shown))
        return [("class:quiet", "\n".join([*(with_ellipsis(f"  {hint}", width) for hint in self._shown), *blank]))]
