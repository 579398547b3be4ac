"""A conversation: the messages of a session as the model saw them, and as they were at earlier points. Pure.

Not here: what the events of a session mean for it, see :mod:`isthmus.agent.session.session`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from isthmus.agent.session.compacted_sizes import CompactedSizes
from isthmus.agent.session.known_files import FilesSnapshot, KnownFiles
from isthmus.agent.session.pruning import pruned
from isthmus.agent.session.rewinding import RewindPoints
from isthmus.agent.session.size import messages_tokens
from isthmus.internal_events import Compacted
from isthmus.models.port.base import Message, Part, Text, text_of

SUMMARY_HEADING = "Summary of the conversation so far (its older messages were replaced by it):"
"""Beginning of the message that replaces compacted messages."""
SUMMARY_SEEN = Message("assistant", (Text("I go on from this summary."),))
"""Reply between a summary and the user's next message, since providers expect the roles to alternate."""


def is_summary(message: Message) -> bool:
    """Return whether a message is the summary of compacted messages."""
    return message.role == "user" and text_of(message).startswith(SUMMARY_HEADING)


@dataclass(slots=True)
class SessionConversation:
    """The messages of a session, the files that the model knows from them, and earlier states of both.

    What cuts or replaces the messages makes a new list of them: earlier states need the old one.
    """

    messages: list[Message] = field(default_factory=list[Message])
    known_files: KnownFiles = field(default_factory=KnownFiles)
    """The files that the model has read or written, as they were then."""
    checkpoints: dict[str, tuple[list[Message], int, FilesSnapshot]] = field(
        default_factory=dict[str, "tuple[list[Message], int, FilesSnapshot]"]
    )
    """The conversation before each checkpoint, by checkpoint id: a list of messages, the number that belongs to it, and
    a snapshot of ``known_files``.

    The list goes on growing, but messages before a model message never change.
    """
    rewind_points: RewindPoints = field(default_factory=RewindPoints)
    """The conversation before each message of the user's."""
    ends: dict[str, tuple[list[Message], int]] = field(default_factory=dict[str, "tuple[list[Message], int]"])
    """The conversation at the end of each earlier task, by task id, as in ``checkpoints``."""
    compactions: list[CompactedSizes] = field(default_factory=list[CompactedSizes])
    """The sizes of the compactions since the last prompt or command."""
    measured_tokens: int = 0
    """Tokens of the system prompt, the tools and the first ``measured_messages`` messages, as the provider counted."""
    measured_messages: int = 0
    """Number of messages that were measured; 0 if none since the conversation was last cut or restored."""
    _known_before_reply: FilesSnapshot = field(default_factory=lambda: KnownFiles().snapshot())
    """Snapshot of ``known_files`` before the last model message."""

    @property
    def tokens(self) -> int | None:
        """Tokens of the next request: those measured, and an estimate of later messages; None if none were measured."""
        if not self.measured_messages:
            return None
        return self.measured_tokens + messages_tokens(self.messages[self.measured_messages :])

    def add_user_parts(self, *parts: Part) -> None:
        """Add parts to the user's last message; after a message of the model they begin a new one."""
        if self.messages and self.messages[-1].role == "user":
            self.messages[-1] = replace(self.messages[-1], parts=(*self.messages[-1].parts, *parts))
        else:
            self.messages.append(Message("user", parts))

    def add_reply(self, message: Message, tokens: int) -> None:
        """Add a model message. The conversation had ``tokens`` tokens with it; 0 if the provider did not count."""
        self.known_files.model_spoke(len(self.messages))
        self._known_before_reply = self.known_files.snapshot()
        self.messages.append(message)
        if tokens:
            self.measured_tokens, self.measured_messages = tokens, len(self.messages)

    def end_task(self, task_id: str) -> None:
        """Keep the conversation as it is at the end of a task."""
        self.ends[task_id] = (self.messages, len(self.messages))
        if self.messages and self.messages[-1].role == "user":
            self.messages = list(self.messages)  # The next prompt is added to this message, in a list of its own.

    def compact(self, compacted: Compacted) -> None:
        """Put the summary in the place of the older messages."""
        before = messages_tokens(self.messages)
        rest = self.messages[max(0, len(self.messages) - compacted.kept) :]
        summary = [Message("user", (Text(compacted.summary),))]
        if not rest or rest[0].role == "user":
            summary.append(SUMMARY_SEEN)
        self.messages = [*summary, *rest]
        self.compactions.append(CompactedSizes(before, messages_tokens(self.messages)))
        self.known_files.cut(len(self.messages))
        if self.measured_messages:  # Otherwise the count lacks the system prompt and the tools.
            self.measured_tokens, self.measured_messages = compacted.tokens_after, len(self.messages)

    def prune(self, count: int, freed_tokens: int) -> None:
        """Remove the long results of tools in the first ``count`` messages, which frees about ``freed_tokens``."""
        self.messages = pruned(self.messages, count)
        self.measured_tokens = max(0, self.measured_tokens - freed_tokens)

    def keep_present(self, checkpoint_id: str) -> None:
        """Keep the present conversation for a checkpoint."""
        self.rewind_points.note_checkpoint(checkpoint_id)
        self.checkpoints[checkpoint_id] = (list(self.messages), len(self.messages), self.known_files.snapshot())

    def keep_before_reply(self, checkpoint_id: str) -> None:
        """Keep the conversation before the last model message for a checkpoint."""
        self.rewind_points.note_checkpoint(checkpoint_id)
        asked = next((at for at in range(len(self.messages), 0, -1) if self.messages[at - 1].role == "user"), 0)
        self.checkpoints[checkpoint_id] = (self.messages, asked, self._known_before_reply)

    def restore(self, checkpoint_id: str) -> bool:
        """Go back to a checkpoint, and return whether it is known; otherwise nothing happens."""
        if (kept := self.checkpoints.get(checkpoint_id)) is None:
            return False
        messages, length, known = kept
        self._go_back(messages[:length], known)
        self.rewind_points.restore(checkpoint_id)
        return True

    def take_rewind_point(self, text: str) -> None:
        """Keep the conversation before a message of the user's, which is added next."""
        # The new message is added to the last one if that is the user's, too.
        is_added = bool(self.messages) and self.messages[-1].role == "user"
        messages = tuple(self.messages) if is_added else self.messages
        self.rewind_points.take(text, messages, self.known_files.snapshot(), len(self.checkpoints))

    def rewind(self, number: int) -> bool:
        """Go back to before a message of the user's, and return whether it is there; otherwise nothing happens."""
        if (point := self.rewind_points.rewind(number)) is None:
            return False
        self._go_back(point.messages[: point.length], point.known)
        return True

    def _go_back(self, messages: Sequence[Message], known: FilesSnapshot) -> None:
        self.messages = list(messages)
        self.known_files.restore(known)
        self.measured_tokens = self.measured_messages = 0

    def replace_messages(self, messages: Sequence[Message]) -> None:
        """Go on with other messages, of another conversation."""
        self.messages = list(messages)
        self.known_files.clear()
        self.measured_tokens = self.measured_messages = 0
