"""The places to which a conversation can be rewound: its state before each message of the user's. Pure.

Not here: the command, see :mod:`isthmus.agent.commands.builtin.rewind`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from isthmus.agent.session.known_files import FilesSnapshot
from isthmus.models.port.base import Message
from isthmus.record import record


@record
class RewindPoint:
    """The conversation before the user's message ``number`` of the session, counted from 1, whose text is ``text``.

    It is the first ``length`` messages of ``messages``, a list that may have grown since. ``known`` is what the model
    knew of files. ``checkpoints`` is the number of checkpoints that the session had.
    """

    number: int
    text: str
    messages: Sequence[Message]
    length: int
    known: FilesSnapshot
    checkpoints: int


@dataclass(slots=True)
class RewindPoints:
    """The points of the present conversation, oldest first. A number is never used again in a session."""

    points: tuple[RewindPoint, ...] = ()
    _count: int = 0
    _at_checkpoints: dict[str, tuple[RewindPoint, ...]] = field(
        default_factory=dict[str, "tuple[RewindPoint, ...]"],
    )

    def take(self, text: str, messages: Sequence[Message], known: FilesSnapshot, checkpoints: int) -> None:
        """Add the point before a message."""
        self._count += 1
        self.points = (*self.points, RewindPoint(self._count, text, messages, len(messages), known, checkpoints))

    def refuse(self, messages: int) -> None:
        """Remove the points before the last messages, which did not become part of the conversation."""
        self.points = self.points[: max(0, len(self.points) - messages)]

    def note_checkpoint(self, checkpoint_id: str) -> None:
        """Keep the present points for a conversation that is restored to this checkpoint."""
        self._at_checkpoints[checkpoint_id] = self.points

    def restore(self, checkpoint_id: str) -> None:
        """Take the points of the conversation at a checkpoint."""
        self.points = self._at_checkpoints.get(checkpoint_id, self.points)

    def rewind(self, number: int) -> RewindPoint | None:
        """Return the point before a message and remove it, with those after it; None if it is not there."""
        found = self.find(number)
        if found is not None:
            self.points = tuple(point for point in self.points if point.number < number)
        return found

    def find(self, number: int) -> RewindPoint | None:
        """Return the point before a message; None if it is not part of the present conversation."""
        return next((point for point in self.points if point.number == number), None)
