"""The text of the agent before the calls that are open, or that it makes next: the end of a fold of events. Pure."""

from collections import deque
from dataclasses import dataclass, field

from isthmus.models.port.base import Message, text_of

LONGEST_SAID = 4_000
"""Maximum number of characters at the end of a text that are kept."""


@dataclass(slots=True)
class SaidText:
    """The end of the agent's last text. A message of a model has it whole; other agents have texts alone."""

    _parts: deque[str] = field(default_factory=deque[str])
    """The last parts of the text, which are at least `LONGEST_SAID` characters if it has as many."""
    _size: int = 0
    """Number of characters in the parts."""
    _message_id: str = ""
    _is_of_model: bool = False

    @property
    def text(self) -> str:
        """The end of the text."""
        return "".join(self._parts)[-LONGEST_SAID:]

    def begin(self) -> None:
        """Begin with a prompt, before which nothing was said."""
        self._set("", "")
        self._is_of_model = False

    def take_part(self, message_id: str, text: str) -> None:
        """Take more of a text; after a model's message it is the beginning of one that comes whole."""
        if self._is_of_model or not text:
            return
        if message_id != self._message_id:
            self._set("", message_id)
        self._add(text)

    def take_whole(self, text: str) -> None:
        """Take a text of an agent that has no messages of a model, also if its parts came before."""
        if not self._is_of_model:
            self._set(text, "")

    def take_reply(self, message: Message) -> None:
        """Take a message of a model, with what it says beside its calls."""
        self._set(text_of(message), self._message_id)
        self._is_of_model = True

    def end_call(self) -> None:
        """Note the end of a call: what an agent without messages of a model said before is not about the next one."""
        if not self._is_of_model:
            self._set("", self._message_id)

    def _set(self, text: str, message_id: str) -> None:
        self._parts.clear()
        self._size, self._message_id = 0, message_id
        self._add(text)

    def _add(self, text: str) -> None:
        kept = text[-LONGEST_SAID:]
        self._parts.append(kept)
        self._size += len(kept)
        while self._size - len(self._parts[0]) >= LONGEST_SAID:
            self._size -= len(self._parts.popleft())
