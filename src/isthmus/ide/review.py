"""Reviews of proposed edits: one state machine per review, and the table of all that are open.

No I/O: the caller shows and closes views and tells the clients. Nothing here or after it writes the target file; the
agent does, after acceptance. The first answer wins, whoever gives it; every later one changes nothing.
"""

from dataclasses import dataclass, field, replace
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Open:
    """Nobody has answered yet."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The person accepted; ``content`` is the final text, which may differ from the proposal and may be empty."""

    content: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """The person rejected, or closed the view."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The client took the question back (answered elsewhere); ``content`` is the text in the view at that moment."""

    content: str


ReviewState: TypeAlias = Open | Accepted | Rejected | Closed


@dataclass(frozen=True, slots=True)
class DiffReview:
    """One proposed edit that a person is to decide.

    ``id`` is unique for ever (an answer to an older review of the same file is thus never taken for this one).
    ``file_path`` is the exact string that the client sent: clients compare it as a string. ``proposed`` is the whole
    new text. ``owner`` says which client asked (opaque to editors), ``title`` names it to the person.
    """

    id: str
    file_path: str
    proposed: str
    owner: str = ""
    title: str = ""
    state: ReviewState = field(default_factory=Open)

    @property
    def is_open(self) -> bool:
        """Whether an answer still counts."""
        return isinstance(self.state, Open)

    def accept(self, content: str) -> "DiffReview":
        """The review after acceptance; itself when it was decided before."""
        return self._decide(Accepted(content))

    def reject(self) -> "DiffReview":
        """The review after rejection; itself when it was decided before."""
        return self._decide(Rejected())

    def close(self, content: str | None = None) -> "DiffReview":
        """The review after its client took it back; ``content`` is what the view held, None: nobody changed it."""
        return self._decide(Closed(self.proposed if content is None else content))

    def _decide(self, state: ReviewState) -> "DiffReview":
        return replace(self, state=state) if self.is_open else self


class ReviewTable:
    """The open reviews by client and exact file path: at most one of each pair.

    Each method returns what changed; None says that nothing did, and then nobody is to be told anything.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, DiffReview] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def open(self, review: DiffReview) -> DiffReview | None:
        """Add a review; the still open one that it replaces (same client, same path) is returned, as rejected."""
        former = self.find(review.owner, review.file_path)
        if former is not None:
            del self._by_id[former.id]
        self._by_id[review.id] = review
        return former.reject() if former is not None else None

    def hand_over(self, review_id: str, owner: str, title: str) -> DiffReview:
        """Give an open review to another client; the one that it had for the path is to be closed before."""
        review = replace(self._by_id[review_id], owner=owner, title=title)
        self._by_id[review_id] = review
        return review

    def find(self, owner: str, file_path: str) -> DiffReview | None:
        """The open review of a client for exactly this path."""
        return next((r for r in self._by_id.values() if r.owner == owner and r.file_path == file_path), None)

    def get(self, review_id: str) -> DiffReview | None:
        """An open review by its id."""
        return self._by_id.get(review_id)

    def all(self, owner: str | None = None) -> tuple[DiffReview, ...]:
        """The open reviews, of one client or of all, oldest first."""
        return tuple(r for r in self._by_id.values() if owner is None or r.owner == owner)

    def accept(self, review_id: str, content: str) -> DiffReview | None:
        """Accept, and take it out of the table."""
        review = self._by_id.pop(review_id, None)
        return review.accept(content) if review is not None else None

    def reject(self, review_id: str) -> DiffReview | None:
        """Reject, and take it out of the table."""
        review = self._by_id.pop(review_id, None)
        return review.reject() if review is not None else None

    def close(self, review_id: str, content: str | None = None) -> DiffReview | None:
        """Take back, and take it out of the table; ``content`` as in :meth:`DiffReview.close`."""
        review = self._by_id.pop(review_id, None)
        return review.close(content) if review is not None else None
