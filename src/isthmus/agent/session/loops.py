"""Loops of a model: the same calls again and again, or a text that repeats itself. Pure.

Only calls with the same name and the same arguments count as the same. What is done about a loop is decided in
:mod:`isthmus.agent.coding.loop_guard`.
"""

import hashlib
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from isthmus.models.port.base import ToolRequest
from isthmus.text.units import show_count

REPETITIONS = 5
"""Number of times that a call, or a cycle of calls, follows on itself before it counts as a loop."""
LONGEST_CYCLE = 5
"""Maximum number of calls of a cycle."""
SHORTEST_REPEATED_TEXT = 2_000
"""Minimum number of characters that the repetitions of a passage have together; less may be a rule or a table."""
PASSAGE_REPETITIONS = 10
PROBE = 50
"""Number of characters at the end of a text that are looked for before it."""
LONGEST_TAIL = 20_000
"""Maximum number of characters at the end of a text that are kept."""
CHECKED_EVERY = 500
"""Number of new characters after which a text is checked again."""
QUOTED = 80
"""Maximum number of characters of a call or a passage in messages."""


@dataclass(slots=True)
class CallLoops:
    """The latest calls of the model, and whether they are a loop.

    ``warnings`` counts the loops that the model was told of since the user's last message or decision. After that one
    more cycle of the same calls is a loop, until the model makes another call.
    """

    warnings: int = 0
    _told: frozenset[bytes] = frozenset()
    """The calls of the loop that the model was told of, as long as it makes no others."""
    _told_length: int = 0
    """Number of calls of its cycle."""
    _calls: deque[tuple[bytes, str]] = field(
        default_factory=lambda: deque[tuple[bytes, str]](maxlen=REPETITIONS * LONGEST_CYCLE)
    )

    def add(self, requests: Sequence[ToolRequest]) -> None:
        """Add the calls of a message, in order."""
        for request in requests:
            arguments = json.dumps(request.arguments, sort_keys=True, ensure_ascii=False, default=str)
            digest = hashlib.sha256(f"{request.name}\0{arguments}".encode("utf-8", "replace")).digest()
            if digest not in self._told:
                self._told = frozenset()
            quoted = arguments if len(arguments) <= QUOTED else f"{arguments[:QUOTED]}..."
            self._calls.append((digest, f"{request.name} {quoted}"))

    def note_warning(self) -> None:
        """Record that the model was told. Another loop has to repeat everything anew, this one only once more."""
        self.warnings += 1
        self._told_length = self._length or 0
        self._told = frozenset(digest for digest, _ in list(self._calls)[-self._told_length :] if self._told_length)
        self._calls.clear()

    def reset(self) -> None:
        """Forget everything: the user has sent a message, or has decided to go on."""
        self.warnings = 0
        self._told = frozenset()
        self._calls.clear()

    @property
    def found(self) -> str | None:
        """Description of the loop at the end of the calls, or None."""
        length, how = self._length, f"{REPETITIONS} times in a row"
        if length is None and self._told and len(self._calls) >= self._told_length:
            length, how = self._told_length, "again"
        if length is None:
            return None
        names = ", ".join(name for _, name in list(self._calls)[-length:])
        what = "the same call" if length == 1 else f"the same {show_count(length, 'call')}"
        return f"{what} {how} ({names})"

    @property
    def _length(self) -> int | None:
        """Number of calls of the cycle that repeats itself at the end, or None."""
        calls = list(self._calls)
        for length in range(1, LONGEST_CYCLE + 1):
            last = calls[-length * REPETITIONS :]
            if len(last) == length * REPETITIONS and last == last[:length] * REPETITIONS:
                return length
        return None


@dataclass(slots=True)
class TextLoop:
    """The end of a text that is being received, and whether it repeats a passage. Code blocks are not checked."""

    _text: str = ""
    _unchecked: int = 0
    _fences: int = 0

    def add(self, text: str) -> str | None:
        """Add the next piece; return the repeated passage if there is one, shortened."""
        self._text = (self._text + text)[-LONGEST_TAIL:]
        self._fences += text.count("```")
        self._unchecked += len(text)
        if self._unchecked < CHECKED_EVERY or self._fences % 2:
            return None
        self._unchecked = 0
        return repeated_passage(self._text)


def repeated_passage(text: str) -> str | None:
    """Return the start of the passage that the end of a text repeats without anything in between, or None."""
    before = text.rfind(text[-PROBE:], 0, -1)
    if len(text) < SHORTEST_REPEATED_TEXT or before < 0:
        return None
    period = len(text) - PROBE - before
    span = max(SHORTEST_REPEATED_TEXT, PASSAGE_REPETITIONS * period)
    if span > len(text) or text[-span + period :] != text[-span:-period]:
        return None
    passage = text[-period:].strip()
    return (passage if len(passage) <= QUOTED else f"{passage[:QUOTED]}...") if passage else None
