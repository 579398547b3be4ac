"""Text that was typed before a question accepted answers.

A key that was meant for something else must not answer a question that has just appeared: only text typed after the
question is on the screen and after a pause counts. Text is kept for the next prompt; text that looks like an answer is
dropped with a note.
"""

import termios
from contextlib import suppress

from isthmus.record import record
from isthmus.terminal.questions.questions import CallQuestion
from isthmus.text.visible import visible_line, with_ellipsis

PAUSE_SECONDS = 0.4
"""Minimum time without a key before a question accepts answers: shorter than it takes to read one."""
LONGEST_SHOWN = 60
"""Maximum number of characters of the text that the note repeats."""


@record
class EarlyText:
    """Text that was typed before ``question`` accepted answers."""

    typed: str
    question: CallQuestion

    @property
    def kept(self) -> str:
        """Text for the next prompt; empty if it looks like an answer or nothing was typed."""
        return "" if self._is_like_an_answer else self.typed.strip()

    @property
    def note(self) -> str:
        """Note to the user about the text; empty if nothing was typed."""
        if not (text := self.typed.strip()):
            return ""
        what = "dropped" if self._is_like_an_answer else "kept for the next prompt"
        return f"too early for an answer, {what}: {with_ellipsis(visible_line(text), LONGEST_SHOWN)}"

    @property
    def _is_like_an_answer(self) -> bool:
        text = self.typed.strip()
        # A key that was held, or pressed again because nothing seemed to happen, counts once.
        key = text[:1] if len(set(text)) == 1 else text
        return self.question.choice(text) is not None or self.question.choice(key) is not None


def drop_begun_line(descriptor: int) -> None:
    """Drop an unfinished line in a terminal in line mode, which cannot be read before it ends."""
    with suppress(termios.error, OSError):
        termios.tcflush(descriptor, termios.TCIFLUSH)
