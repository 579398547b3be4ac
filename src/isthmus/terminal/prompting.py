"""What the interactive front asks of a user, as a port, and its plain form: lines from any stdin.

The plain form serves where there is no terminal to edit on (a pipe, a terminal of type "dumb", an output that is
redirected). The form with an editable prompt is in ``prompt_toolkit_input``.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Protocol, TypeAlias

from isthmus.slash_commands.tree import Completion
from isthmus.terminal.blocks import choice_lines
from isthmus.terminal.early_text import PAUSE_SECONDS, EarlyText, drop_begun_line
from isthmus.terminal.interruption import Interrupted
from isthmus.terminal.questions import AnswerChoice, CallQuestion
from isthmus.terminal.sanitize import visible_line

if TYPE_CHECKING:
    from isthmus.terminal.screen import Screen


Complete: TypeAlias = Callable[[str], Sequence[Completion]]
"""How a line may go on: whole lines."""
AskForCompletions: TypeAlias = Callable[[str], Awaitable[Sequence[Completion]]]
"""The same, of somebody who takes a moment."""


class Prompter(Protocol):
    """Reads from a user. Each read may be cancelled, and then leaves nothing on the screen.

    Each raises EOFError when the user leaves (Ctrl-D, end of input) and Interrupted for Ctrl-C.
    """

    @property
    def echoes(self) -> bool:
        """What is typed stands on the screen afterwards."""
        ...

    def offer(self, complete: Complete, ask: AskForCompletions | None = None) -> None:
        """What a line may go on as, for a user who asks (Tab); ``ask`` is asked where ``complete`` knows nothing."""
        ...

    async def read_prompt(self) -> str:
        """Return the next message; several lines are joined by newlines."""
        ...

    async def read_choice(self, question: CallQuestion) -> AnswerChoice:
        """One of the choices of a question that is already on the screen.

        On a terminal what was typed before, or before a pause in typing, is no answer: it is kept for the next prompt.
        """
        ...

    async def read_line(self, lines: Sequence[str], prompt: str) -> str:
        """One line, which may be empty, after ``prompt``; ``lines`` stand above it."""
        ...

    def interrupt(self) -> None:
        """A SIGINT came while something is read."""
        ...

    def above(self, write: Callable[[], None]) -> bool:
        """Call ``write``, which prints whole lines, above what is being read, and show that again below; False: nothing
        is being read, and nothing was called."""
        ...

    def without_echo(self) -> AbstractContextManager[None]:
        """Keep what is typed between two reads for the next one, without showing it."""
        ...

    def with_echo(self) -> AbstractContextManager[None]:
        """Undo ``without_echo`` while another program (an editor) has the terminal."""
        ...


class LinePrompter:
    """A ``Prompter`` on plain lines of the file descriptor ``descriptor``, prompting through ``screen``.

    Where it is a terminal (``echoes``), a question takes answers when no line came for ``pause`` seconds. Lines of a
    file or of a pipe are written in advance: there each answers what is asked next.
    """

    def __init__(self, descriptor: int, screen: "Screen", *, echoes: bool, pause: float = PAUSE_SECONDS) -> None:
        self.echoes = echoes
        self._pause = pause
        self._kept: list[str] = []
        self._asked = ""
        self._descriptor = descriptor
        self._screen = screen
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._reader: threading.Thread | None = None
        self._reading: asyncio.Future[str | None] | None = None

    def offer(self, complete: Complete, ask: AskForCompletions | None = None) -> None:
        """Nothing is completed on plain lines."""

    async def read_prompt(self) -> str:
        glyph = self._screen.glyphs.prompt
        if self._kept:
            kept = self._kept.pop(0)
            self._print(f"{glyph} {visible_line(kept)}\n")
            return kept
        lines = [await self._line(f"{glyph} ")]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(await self._line())
        return "\n".join(lines)

    async def read_choice(self, question: CallQuestion) -> AnswerChoice:
        if self.echoes:
            await self._take_early_lines(question)
        # The choices are part of what is asked: they stay on the screen, nothing here can be redrawn.
        self._print("".join(text for _, text in choice_lines(question, self._screen.width)))
        keys = ", ".join(choice.key for choice in question.choices)
        while True:
            typed = await self._line(f"  answer ({keys}): ")
            if (choice := question.choice(typed)) is not None:
                return choice
            self._print(f"  {visible_line(typed)!r} is none of {keys}\n")

    async def read_line(self, lines: Sequence[str], prompt: str) -> str:
        self._print("".join(f"  {line}\n" for line in lines))
        return await self._line(f"  {prompt}")

    def interrupt(self) -> None:
        if self._reading is not None and not self._reading.done():
            self._reading.set_exception(Interrupted())

    def above(self, write: Callable[[], None]) -> bool:
        if self._reading is None:
            return False
        # What has been typed of a line stays where it is, and with the terminal.
        self._print("\n" if self._asked else "")
        write()
        self._print(self._asked)
        return True

    def without_echo(self) -> AbstractContextManager[None]:
        return nullcontext()

    def with_echo(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def _take_early_lines(self, question: CallQuestion) -> None:
        """Take the lines that come until none has come for a while; none of them is an answer."""
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(self._pause):
                    early = EarlyText(await self._line(), question)
                if early.kept:
                    self._kept.append(early.kept)
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
            # A thread that may stay in its read for ever, when the answer came from elsewhere; hence a daemon, and
            # os.read: a buffered stdin would be locked when the interpreter ends.
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
        if not self.echoes:
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
