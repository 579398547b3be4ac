"""The editable prompt: prompt_toolkit behind the ``Prompter`` port.

Imports prompt_toolkit, so import this module only to prompt. Never requests the cursor position: not every terminal
answers, and it is needed only for the height of menus.
"""

import asyncio
import os
import sys
import termios
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import is_done
from prompt_toolkit.formatted_text import AnyFormattedText, FormattedText, StyleAndTextTuples
from prompt_toolkit.input import create_input
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.key_binding.bindings.completion import display_completions_like_readline
from prompt_toolkit.layout.containers import ConditionalContainer, HSplit, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle, PromptSession, print_formatted_text
from prompt_toolkit.styles import DynamicStyle, Style
from typing_extensions import override

from isthmus.terminal.prompt.key_bindings import prompt_keys
from isthmus.terminal.prompt.menu_prompts import ChoicePrompt, LinePrompt
from isthmus.terminal.prompt.pasting import Pasting
from isthmus.terminal.prompt.prompt_completer import PromptCompleter
from isthmus.terminal.prompt.prompt_hints import PromptHints
from isthmus.terminal.prompt.prompt_history import prompt_history
from isthmus.terminal.prompt.prompting import AskForCompletions, Complete, Prompter, TypedPrompt
from isthmus.terminal.prompt.reflowing_renderer import make_reflowing
from isthmus.terminal.questions.early_text import PAUSE_SECONDS, EarlyText
from isthmus.terminal.questions.questions import AnswerChoice, CallQuestion
from isthmus.terminal.questions.typed_ahead import TypedAhead, TypedKey, WorkKey
from isthmus.terminal.screen.reflow import reflows
from isthmus.terminal.screen.screen import Glyphs
from isthmus.terminal.screen.themes import ColourTheme, prompt_styles
from isthmus.terminal.signals import Interrupted

if TYPE_CHECKING:
    from isthmus.terminal.prompt.session_mode import ConversationMode

ESCAPE_SECONDS = 0.1
"""Time without another byte after which Escape counts as the key."""


class PromptToolkitPrompter(Prompter):
    """A ``Prompter`` on the terminal of stdin and stdout.

    ``history_file`` stores the input (mode 0600); it is kept in memory if that is None or cannot be used. A question
    accepts answers, and shows its choices, after ``pause`` seconds without a key.
    """

    def __init__(
        self, glyphs: Glyphs, history_file: Path | None, pause: float = PAUSE_SECONDS, *, has_vi_keys: bool = False
    ) -> None:
        self.typed = TypedAhead()
        self.reads_keys = True
        self.use_theme(ColourTheme.AUTO)
        self._style = DynamicStyle(lambda: self._theme_style)
        self._input = create_input(sys.stdin)
        self._output = _output()
        self._pause = pause
        self._glyph = glyphs.prompt
        self._mode: ConversationMode | None = None
        self._reading: PromptSession[str] | None = None
        self._completer: PromptCompleter | None = None
        self._pasting = Pasting(self._note)
        self._prompt: PromptSession[str] = PromptSession(
            multiline=True,
            history=prompt_history(history_file, self._pasting),
            key_bindings=prompt_keys(self._complete, self._next_mode, self._pasting),
            prompt_continuation="  ",
            style=self._style,
            input=self._input,
            output=self._output,
            enable_open_in_editor=True,
            vi_mode=has_vi_keys,
            interrupt_exception=Interrupted,
            # On Tab, and below the prompt: a menu would need the cursor position.
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
        )
        self._reflows = reflows(os.environ)
        if self._reflows:
            make_reflowing(self._prompt)
        self._hints = PromptHints(self._prompt, lambda: self._output.get_size().columns)

    def _note(self, text: str) -> None:
        self._hints.note(text)

    @override
    def offer(self, complete: Complete, ask: AskForCompletions | None = None) -> None:
        self._completer = self._prompt.completer = self._hints.completer = PromptCompleter(complete, ask)

    def _complete(self, event: KeyPressEvent) -> None:
        """Complete on Tab. Completions of the agent come in the background, and are ignored if the line has changed."""
        completer, line = self._completer, event.current_buffer.document.text_before_cursor
        if completer is None:
            return
        if not completer.has_to_ask(line):
            display_completions_like_readline(event)
            return

        async def ask() -> None:
            await completer.ask(line)
            buffer = event.current_buffer
            if buffer.document.text_before_cursor != line:
                return
            if (other := completer.best_other(line)) is not None:
                buffer.delete_before_cursor(len(line))
                buffer.insert_text(other)
            else:
                display_completions_like_readline(event)

        event.app.create_background_task(ask())

    def _next_mode(self, event: KeyPressEvent) -> None:
        """Choose the next mode in the background, and draw the prompt again."""
        if (mode := self._mode) is None:
            return

        async def choose() -> None:
            await mode.next()
            event.app.invalidate()

        event.app.create_background_task(choose())

    @override
    async def read_prompt(self, mode: "ConversationMode") -> TypedPrompt:
        def message() -> StyleAndTextTuples:
            return [("class:quiet", mode.mark), ("class:prompt", f"{self._glyph} ")]

        if (waiting := self.typed.next()) is not None:
            # Typed while the agent worked, when no image could be pasted.
            return TypedPrompt(
                self._pasting.texts.unfold(await self._read(self._prompt, message, waiting, is_sent=True))
            )
        self._mode = mode
        self._hints.begin()
        draft, self.typed.draft = self.typed.draft, ""
        return self._pasting.prompt(await self._read(self._prompt, message, draft))

    @override
    def show_status(self, status: Callable[[int], str]) -> None:
        def fragments() -> StyleAndTextTuples:
            return [("class:quiet", status(self._output.get_size().columns - 1))]

        # Not the session's own toolbar, which waits for the position of the cursor.
        line = Window(FormattedTextControl(fragments), height=1, dont_extend_height=True)
        layout = self._prompt.layout
        layout.container = HSplit([layout.container, ConditionalContainer(line, filter=~is_done)])

    @override
    def use_theme(self, theme: ColourTheme) -> None:
        self._theme_style = Style.from_dict(dict(prompt_styles(theme)))

    @override
    def redraw(self) -> None:
        if self._reading is not None:
            self._reading.app.invalidate()

    @override
    @contextmanager
    def while_working(self, pressed: Callable[[Sequence[WorkKey]], None]) -> Generator[None]:
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None

        def take(keys: Sequence[KeyPress]) -> None:
            if keys:
                pressed(self.typed.take(TypedKey(str(getattr(key.key, "value", key.key)), key.data) for key in keys))

        def read() -> None:
            nonlocal timer
            if timer is not None:
                timer.cancel()
            take(self._input.read_keys())
            # A lone Escape is the beginning of other keys until nothing follows it.
            timer = loop.call_later(ESCAPE_SECONDS, lambda: take(self._input.flush_keys()))

        take(get_typeahead(self._input))
        with self._input.attach(read):
            try:
                yield
            finally:
                if timer is not None:
                    timer.cancel()

    @override
    async def read_choice(self, question: CallQuestion) -> AnswerChoice:
        note = await self._take_early_text(question)
        choices = ChoicePrompt(question, self._glyph, note, self._output.get_size)
        session = self._question_session(choices.key_bindings())
        if not choices.is_whole:
            print_formatted_text(FormattedText(choices.everything()), style=self._style, output=self._output)
        while True:
            typed = await self._read(session, choices.message)
            if (choice := question.choice(typed)) is not None:
                return choice
            choices.refuse()

    @override
    async def read_line(self, lines: Sequence[str], prompt: str, choices: int = 0, *, is_at_once: bool = True) -> str:
        menu = LinePrompt(lines, prompt, self._glyph, self._output.get_size, choices, is_at_once=is_at_once)
        return await self._read(self._question_session(menu.key_bindings()), menu.message)

    def _question_session(self, keys: KeyBindings) -> PromptSession[str]:
        """Return a prompt that leaves nothing on the screen."""
        session: PromptSession[str] = PromptSession(
            key_bindings=keys,
            style=self._style,
            input=self._input,
            output=self._output,
            erase_when_done=True,
            interrupt_exception=Interrupted,
        )
        if self._reflows:
            make_reflowing(session)
        return session

    @override
    def interrupt(self) -> None:
        if self._reading is not None and self._reading.app.is_running and not self._reading.app.is_done:
            self._reading.app.exit(exception=Interrupted())

    @override
    def above(self, write: Callable[[], None]) -> bool:
        app = self._reading.app if self._reading is not None else None
        if app is None or not app.is_running or app.is_done:
            return False
        with set_app(app):
            run_in_terminal(write)
        return True

    @override
    @contextmanager
    def without_echo(self) -> Generator[None]:
        with _local_modes(lambda modes: modes & ~(termios.ECHO | termios.ICANON)):
            yield

    @override
    @contextmanager
    def with_echo(self) -> Generator[None]:
        with _local_modes(lambda modes: modes | termios.ECHO | termios.ICANON):
            yield

    async def _take_early_text(self, question: CallQuestion) -> str:
        """Read input until no key has been pressed for a while, and return a note about it for the user."""

        def message() -> StyleAndTextTuples:
            return [("class:quiet", "  not an answer yet: ")] if session.default_buffer.text else []

        def end() -> None:
            if session.app.is_running and not session.app.is_done:
                session.app.exit(result=session.default_buffer.text)

        def wait_again(_: object = None) -> None:
            nonlocal timer
            if timer is not None:
                timer.cancel()
            timer = loop.call_later(self._pause, end)

        session: PromptSession[str] = PromptSession(
            message,
            multiline=True,
            style=self._style,
            input=self._input,
            output=self._output,
            erase_when_done=True,
            enable_open_in_editor=False,
            interrupt_exception=Interrupted,
        )
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None
        session.app.key_processor.before_key_press += wait_again
        dropped = self.typed.drop_answers(question)
        draft, self.typed.draft = self.typed.draft, ""
        self._reading = session
        try:
            await session.prompt_async(default=draft, handle_sigint=False, pre_run=wait_again)
        finally:
            self._reading = None
            if timer is not None:
                timer.cancel()
            early = EarlyText(session.default_buffer.text, question)
            # Kept even if the question was answered elsewhere meanwhile: the text is the user's.
            self.typed.draft = early.kept
        return "; ".join(note for note in (dropped, early.note) if note)

    async def _read(
        self, session: PromptSession[str], message: AnyFormattedText, typed: str = "", *, is_sent: bool = False
    ) -> str:
        self._reading = session
        try:
            return await session.prompt_async(
                message,
                default=typed,
                accept_default=is_sent,
                handle_sigint=False,
                pre_run=lambda: self._hints.look_ahead(session.default_buffer) if typed else None,
            )
        finally:
            self._reading = None


def _output() -> Vt100_Output:
    """Return the terminal of stdout, without requests for its cursor position."""

    def size() -> Size:
        with suppress(OSError, ValueError):
            columns, rows = os.get_terminal_size(sys.stdout.fileno())
            if columns and rows:
                return Size(rows=rows, columns=columns)
        return Size(rows=24, columns=80)

    colors = ColorDepth.from_env()  # NO_COLOR
    return Vt100_Output(sys.stdout, size, os.environ.get("TERM"), colors, enable_cpr=False)


@contextmanager
def _local_modes(change: Callable[[int], int]) -> Generator[None]:
    """Change the local modes of the terminal on stdin, if there is one, meanwhile. Ctrl-C remains a signal."""
    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (termios.error, OSError, ValueError):
        yield
        return
    changed = [*before]
    changed[3] = change(before[3]) | termios.ISIG
    termios.tcsetattr(descriptor, termios.TCSADRAIN, changed)
    try:
        yield
    finally:
        with suppress(termios.error, OSError):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
