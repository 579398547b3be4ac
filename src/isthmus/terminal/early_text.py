"""Text that was typed before a question took answers. Which terminal it came from is a ``Prompter``'s business.

A key that was meant for something else must not answer a question that has just appeared: only what is typed after
the question is on the screen and after a pause counts. Text stays for the next prompt; what would have been an answer
is dropped, and said.
"""

import termios
from contextlib import suppress
from dataclasses import dataclass

from isthmus.terminal.questions import CallQuestion
from isthmus.terminal.sanitize import visible_line
from isthmus.text.visible import with_ellipsis

PAUSE_SECONDS = 0.4
"""How long no key is pressed before a question takes answers: shorter than it takes to read one."""
LONGEST_SHOWN = 60
"""Characters of the text that are repeated."""


@dataclass(frozen=True, slots=True)
class EarlyText:
    """What was typed before ``question`` took answers."""

    typed: str
    question: CallQuestion

    @property
    def kept(self) -> str:
        """Return the text for the next prompt; empty where it looks like an answer, or nothing was typed."""
        return "" if self._is_like_an_answer else self.typed.strip()

    @property
    def note(self) -> str:
        """Return what the user is told of it; empty where nothing was typed."""
        if not (text := self.typed.strip()):
            return ""
        what = "dropped" if self._is_like_an_answer else "kept for the next prompt"
        return f"too early for an answer, {what}: {with_ellipsis(visible_line(text), LONGEST_SHOWN)}"

    @property
    def _is_like_an_answer(self) -> bool:
        text = self.typed.strip()
        # A key that was held, or pressed again since nothing seemed to happen, is that key.
        key = text[:1] if len(set(text)) == 1 else text
        return self.question.choice(text) is not None or self.question.choice(key) is not None


def drop_begun_line(descriptor: int) -> None:
    """Drop the beginning of a line in a terminal that gives whole lines: it cannot be read before the line ends."""
    with suppress(termios.error, OSError):
        termios.tcflush(descriptor, termios.TCIFLUSH)
