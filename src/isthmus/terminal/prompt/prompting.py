"""The ``Prompter`` port, through which the interactive front reads from a user, and its plain form.

The plain form reads lines from any stdin, for use without an editable terminal (a pipe, a terminal of type "dumb", a
redirected output). The form with an editable prompt is in ``prompt_toolkit_input``.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Protocol, TypeAlias

from typing_extensions import override

from isthmus.events import MessagePart
from isthmus.record import record
from isthmus.slash_commands.tree import Completion
from isthmus.terminal.questions.early_text import PAUSE_SECONDS, EarlyText, drop_begun_line
from isthmus.terminal.questions.questions import AnswerChoice, CallQuestion
from isthmus.terminal.questions.typed_ahead import TypedAhead, WorkKey
from isthmus.terminal.screen.blocks import choice_lines
from isthmus.terminal.screen.wrapping import hanging_of, word_rows
from isthmus.terminal.signals import Interrupted
from isthmus.text.visible import visible_line

if TYPE_CHECKING:
    from isthmus.terminal.prompt.session_mode import ConversationMode
    from isthmus.terminal.screen.screen import Screen
    from isthmus.terminal.screen.themes import ColourTheme


@record
class TypedPrompt:
    """A message as the user typed it; its images are parts beside the text."""

    text: str
    images: tuple[MessagePart, ...] = ()


Complete: TypeAlias = Callable[[str], Sequence[Completion]]
"""Function that returns completions of a line, as whole lines."""


AskForCompletions: TypeAlias = Callable[[str], Awaitable[Sequence[Completion]]]
"""Function that asks the agent for completions of a line."""


class Prompter(Protocol):
    """Reads from a user. Each read may be cancelled, and then leaves nothing on the screen.

    Each raises EOFError when the user leaves (Ctrl-D, end of input) and Interrupted for Ctrl-C.
    """

    typed: TypedAhead
    """Text that was typed while nothing was read: its messages are the next prompts, its draft begins the next one."""
    reads_keys: bool
    """Whether keys are read while the agent works."""

    def offer(self, complete: Complete, ask: AskForCompletions | None = None) -> None:
        """Complete lines on Tab with ``complete``, and with ``ask`` if that returns nothing."""
        ...

    async def read_prompt(self, mode: "ConversationMode") -> TypedPrompt:
        """Return the next message; several lines are joined by newlines.

        ``mode`` is shown before the prompt; a key changes it.
        """
        ...

    def show_status(self, status: Callable[[int], str]) -> None:
        """Show below each prompt what ``status`` returns for a width, where the prompt can be redrawn."""
        ...

    def use_theme(self, theme: "ColourTheme") -> None:
        """Prompt in the colours of a theme from now on."""
        ...

    def redraw(self) -> None:
        """Draw the prompt again, if it is being read, because what it shows has changed."""
        ...

    def while_working(self, pressed: Callable[[Sequence[WorkKey]], None]) -> AbstractContextManager[None]:
        """Take keys into ``typed`` meanwhile, and call ``pressed`` after each with their effects on the turn."""
        ...

    async def read_choice(self, question: CallQuestion) -> AnswerChoice:
        """Return the user's choice for a question that is already on the screen.

        On a terminal, text typed before that, or without a pause after it, is not an answer: it is kept for the next
        prompt.
        """
        ...

    async def read_line(self, lines: Sequence[str], prompt: str, choices: int = 0, *, is_at_once: bool = True) -> str:
        """Return one line, which may be empty, typed after ``prompt`` and below ``lines``.

        The first ``choices`` lines are numbered from 1. Where keys are read, the arrows and Enter choose one, and, with
        ``is_at_once`` and not more than nine of them, its digit as the first key; its number is returned.
        """
        ...

    def interrupt(self) -> None:
        """Interrupt the current read on SIGINT."""
        ...

    def above(self, write: Callable[[], None]) -> bool:
        """Call ``write``, which prints whole lines, above the prompt, and redraw the prompt.

        Return False, without a call, if nothing is being read.
        """
        ...

    def without_echo(self) -> AbstractContextManager[None]:
        """Keep input between two reads for the next one, without showing it."""
        ...

    def with_echo(self) -> AbstractContextManager[None]:
        """Undo ``without_echo`` while another program (an editor) has the terminal."""
        ...


class LinePrompter(Prompter):
    """A ``Prompter`` for plain lines of the file descriptor ``descriptor``, prompting through ``screen``.

    On a terminal (``echoes``), a question accepts answers after ``pause`` seconds without a line. Lines of a file or a
    pipe are written in advance: each of them answers the next question.
    """

    def __init__(self, descriptor: int, screen: "Screen", *, echoes: bool, pause: float = PAUSE_SECONDS) -> None:
        self.typed = TypedAhead()
        self.reads_keys = False
        self._echoes = echoes
        self._pause = pause
        self._asked = ""
        self._descriptor = descriptor
        self._screen = screen
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._reader: threading.Thread | None = None
        self._reading: asyncio.Future[str | None] | None = None

    @override
    def offer(self, complete: Complete, ask: AskForCompletions | None = None) -> None:
        pass  # plain lines are not completed

    @override
    async def read_prompt(self, mode: "ConversationMode") -> TypedPrompt:
        glyph = f"{mode.mark}{self._screen.glyphs.prompt}"
        if (kept := self.typed.next()) is not None:
            self._print(f"{glyph} {visible_line(kept)}\n")
            return TypedPrompt(kept)
        lines = [await self._line(f"{glyph} ")]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(await self._line())
        return TypedPrompt("\n".join(lines))

    @override
    def show_status(self, status: Callable[[int], str]) -> None:
        pass  # a line that was printed cannot change

    @override
    def use_theme(self, theme: "ColourTheme") -> None:
        pass  # prompts have no colours here

    @override
    def redraw(self) -> None:
        pass

    @override
    def while_working(self, pressed: Callable[[Sequence[WorkKey]], None]) -> AbstractContextManager[None]:
        return nullcontext()  # the terminal shows the line that is typed, and keeps it

    @override
    async def read_choice(self, question: CallQuestion) -> AnswerChoice:
        if self._echoes:
            await self._take_early_lines(question)
        # The choices are part of the question and stay on the screen: nothing can be redrawn here.
        self._print("".join(text for _, text in choice_lines(question, self._screen.width)))
        keys = ", ".join(choice.key for choice in question.choices)
        while True:
            typed = await self._line(f"  answer ({keys}): ")
            if (choice := question.choice(typed)) is not None:
                return choice
            self._print(f"  {visible_line(typed)!r} is not one of {keys}\n")

    @override
    async def read_line(self, lines: Sequence[str], prompt: str, choices: int = 0, *, is_at_once: bool = True) -> str:
        room = self._screen.width - 3
        self._print("".join(f"  {row}\n" for line in lines for row in word_rows(line, room, hanging_of(line, room))))
        return await self._line(f"  {prompt}")

    @override
    def interrupt(self) -> None:
        if self._reading is not None and not self._reading.done():
            self._reading.set_exception(Interrupted())

    @override
    def above(self, write: Callable[[], None]) -> bool:
        if self._reading is None:
            return False
        # The unfinished input stays on its line; the terminal still holds it.
        self._print("\n" if self._asked else "")
        write()
        self._print(self._asked)
        return True

    @override
    def without_echo(self) -> AbstractContextManager[None]:
        return nullcontext()

    @override
    def with_echo(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def _take_early_lines(self, question: CallQuestion) -> None:
        """Read lines until none has come for a while; they are not answers."""
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(self._pause):
                    early = EarlyText(await self._line(), question)
                if early.kept:
                    self.typed.queue.append(early.kept)
                if early.note:
                    self._print(f"  {early.note}\n")
        drop_begun_line(self._descriptor)

    def _print(self, text: str) -> None:
        self._screen.console.print(text, end="")
        self._screen.console.file.flush()

    async def _line(self, asked: str = "") -> str:
        self._asked = asked
        self._print(asked)
        loop = asyncio.get_running_loop()
        if self._reader is None:
            # The thread may never return from its read if the answer came from elsewhere: hence a daemon, and os.read,
            # because a buffered stdin would be locked when the interpreter exits.
            self._reader = threading.Thread(target=self._read_lines, args=(loop,), name="stdin", daemon=True)
            self._reader.start()
        taking = asyncio.ensure_future(self._lines.get())
        self._reading = loop.create_future()
        try:
            await asyncio.wait({taking, self._reading}, return_when=asyncio.FIRST_COMPLETED)
            if self._reading.done():
                self._reading.result()
            line = taking.result()
        finally:
            taking.cancel()
            self._reading = None
        if line is None:
            self._lines.put_nowait(None)
            raise EOFError
        if not self._echoes:
            self._print(f"{visible_line(line)}\n")
        return line

    def _read_lines(self, loop: asyncio.AbstractEventLoop) -> None:
        rest = b""
        while True:
            try:
                part = os.read(self._descriptor, 65536)
            except OSError:
                part = b""
            *lines, rest = (rest + part).split(b"\n")
            if not part and rest:
                lines.append(rest)
            try:
                for line in lines:
                    loop.call_soon_threadsafe(self._lines.put_nowait, line.decode("utf-8", "replace").rstrip("\r"))
                if not part:
                    loop.call_soon_threadsafe(self._lines.put_nowait, None)
                    return
            except RuntimeError:
                return  # the loop has ended before the input did
