"""Text and keys that a user types while the agent works: a draft, and messages that are sent when the turn ends. Pure.

It is not an editor: it takes letters, pastes, Backspace and Enter. The draft is edited at the next prompt.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from isthmus.terminal.questions.early_text import EarlyText
from isthmus.terminal.questions.questions import CallQuestion

MAXIMUM_DRAFT = 1_000_000
"""Maximum number of characters of the draft; more are dropped."""
MAXIMUM_QUEUED = 100
"""Maximum number of messages that wait; a further one stays in the draft."""


class TypedKey(NamedTuple):
    """A key: its name in prompt_toolkit's words, or the character itself, and the text that it stands for."""

    name: str
    data: str


class WorkKey(Enum):
    """Effect of a key on the turn."""

    INTERRUPT = "interrupt"
    NEXT_MODE = "next mode"
    STEER = "steer"


@dataclass(slots=True)
class TypedAhead:
    """The draft, and the messages that wait for the end of the turn, oldest first.

    ``sent`` are messages for the work under way that are not in the conversation yet.
    """

    draft: str = ""
    queue: list[str] = field(default_factory=list[str])
    sent: list[str] = field(default_factory=list[str])

    def take(self, keys: Iterable[TypedKey]) -> list[WorkKey]:
        """Take the keys of one read, and return their effects on the turn.

        Escape with another key behind it in the same read is that key with Alt.
        """
        effects: list[WorkKey] = []
        is_alt = False
        keys = list(keys)
        for at, key in enumerate(keys):
            following = keys[at + 1].name if at + 1 < len(keys) else ""
            if key.name == "escape" and following not in ("", "escape"):
                is_alt = True
                continue
            if (effect := self._key(key, is_alt=is_alt)) is not None:
                effects.append(effect)
            is_alt = False
        return effects

    def next(self) -> str | None:
        """Return the next message to send and remove it; None if none waits."""
        return self.queue.pop(0) if self.queue else None

    @property
    def has_next(self) -> bool:
        """Whether a message waits."""
        return bool(self.queue)

    def take_steering(self) -> str:
        """Remove and return everything that was typed, for the work under way."""
        text = "\n".join(item for item in (*self.queue, self.draft.strip()) if item)
        self.queue.clear()
        self.draft = ""
        if text:
            self.sent.append(text)
        return text

    def arrived(self, text: str) -> None:
        """Take a message as part of the conversation."""
        if text in self.sent:
            self.sent.remove(text)

    def came_back(self, text: str) -> None:
        """Let a message that was not taken for the work under way wait for its end."""
        self.arrived(text)
        self.queue.insert(0, text)

    def unqueue(self) -> None:
        """Make the waiting messages part of the draft: the user decides about them after the turn went otherwise."""
        self.draft = "\n".join(text for text in (*self.sent, *self.queue, self.draft) if text)
        self.sent.clear()
        self.queue.clear()

    def drop_answers(self, question: CallQuestion) -> str:
        """Drop waiting messages that look like answers to a question which has just come; return a note about them."""
        early = [EarlyText(text, question) for text in self.queue]
        self.queue = [item.kept for item in early if item.kept]
        return "; ".join(item.note for item in early if not item.kept)

    def _key(self, key: TypedKey, *, is_alt: bool) -> WorkKey | None:
        match key.name:
            case "escape":
                return WorkKey.INTERRUPT
            case "s-tab":
                return WorkKey.NEXT_MODE
            case "c-i" if not is_alt and (self.draft.strip() or self.queue):
                return WorkKey.STEER
            case "c-m" | "c-j":
                self._enter(is_new_line=is_alt)
            case "c-h":
                self.draft = self.draft[:-1]
            case "c-u":
                self.draft = ""
            case "up":
                if not self.draft and self.queue:
                    self.draft = self.queue.pop()
            case "<bracketed-paste>":
                self._add(key.data.replace("\r\n", "\n").replace("\r", "\n"))
            case name:
                if len(name) == 1 and name.isprintable() and not is_alt:
                    self._add(key.data)
        return None

    def _add(self, text: str) -> None:
        self.draft = (self.draft + text)[:MAXIMUM_DRAFT]

    def _enter(self, *, is_new_line: bool) -> None:
        if self.draft.endswith("\\"):
            self.draft, is_new_line = self.draft[:-1], True
        if is_new_line:
            self._add("\n")
        elif self.draft.strip() and len(self.queue) < MAXIMUM_QUEUED:
            self.queue.append(self.draft.strip())
            self.draft = ""
