"""The text of the agent before the calls that are open, or that it makes next: the end of a fold of events. Pure."""

from dataclasses import dataclass

from isthmus.models.port.base import Message, text_of

LONGEST_SAID = 4_000
"""Maximum number of characters at the end of a text that are kept."""


@dataclass(slots=True)
class SaidText:
    """The end of the agent's last text. A message of a model has it whole; other agents have texts alone."""

    text: str = ""
    _message_id: str = ""
    _is_of_model: bool = False

    def begin(self) -> None:
        """Begin with a prompt, before which nothing was said."""
        self.text, self._message_id, self._is_of_model = "", "", False

    def take_part(self, message_id: str, text: str) -> None:
        """Take more of a text; after a model's message it is the beginning of one that comes whole."""
        if not self._is_of_model:
            before = self.text if message_id == self._message_id else ""
            self.text, self._message_id = (before + text)[-LONGEST_SAID:], message_id

    def take_whole(self, text: str) -> None:
        """Take a text of an agent that has no messages of a model, also if its parts came before."""
        if not self._is_of_model:
            self.text, self._message_id = text[-LONGEST_SAID:], ""

    def take_reply(self, message: Message) -> None:
        """Take a message of a model, with what it says beside its calls."""
        self.text, self._is_of_model = text_of(message)[-LONGEST_SAID:], True

    def end_call(self) -> None:
        """Note the end of a call: what an agent without messages of a model said before is not about the next one."""
        if not self._is_of_model:
            self.text = ""
