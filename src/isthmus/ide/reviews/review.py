"""Reviews of proposed edits: one state machine per review, and a table of the open reviews with a queue per file.

No I/O: the caller shows and closes views and notifies the clients. The target file is written by the agent, after
acceptance. The first answer wins, from any place; later answers change nothing. At most one review of a file is shown,
so that the next one is compared with the result of the previous one.
"""

from collections.abc import Callable
from dataclasses import field, replace
from typing import TypeAlias

from isthmus.record import record


@record
class Open:
    """Waiting for an answer."""


@record
class Accepted:
    """Accepted by the user; ``content`` is the final text, which may differ from the proposal and may be empty."""

    content: str


@record
class Rejected:
    """Rejected by the user, or closed in the view.

    ``instead`` is the reason why an acceptance was sent as a rejection; empty if the user rejected. ``reason`` has the
    user's words to the agent, if they wrote any.
    """

    instead: str = ""
    reason: str = ""


@record
class Closed:
    """Ended without the user's decision; ``content`` is the text in the view at that moment.

    ``problem`` is the reason why the user could not be asked; empty if they were asked or the client withdrew the
    review.
    """

    content: str
    problem: str = ""


ReviewState: TypeAlias = Open | Accepted | Rejected | Closed


@record
class DiffReview:
    """One proposed edit for a user to decide.

    ``id`` is never reused, so that an answer to an older review of the same file cannot be mistaken for an answer to
    this one. ``file_path`` is the exact string from the client: clients compare it as a string. ``proposed`` is the
    whole new text. ``owner`` is the id of the client (opaque to editors), ``title`` its name for the user. ``tab_name``
    is the client's own name for the view, if its protocol has one. ``target`` is the real path of the file: reviews of
    the same target wait for each other. ``opened`` is the Unix time in seconds at which the agent asked.
    """

    id: str
    file_path: str
    proposed: str
    owner: str = ""
    title: str = ""
    tab_name: str = ""
    target: str = ""
    state: ReviewState = field(default_factory=Open)
    opened: float = field(default=0.0, compare=False)

    @property
    def is_open(self) -> bool:
        """Whether an answer still counts."""
        return isinstance(self.state, Open)

    def accept(self, content: str) -> "DiffReview":
        """Return the accepted review; if it is not open, return it unchanged."""
        return self._decide(Accepted(content))

    def reject(self, reason: str = "") -> "DiffReview":
        """Return the review rejected with the user's words; if it is not open, return it unchanged."""
        return self._decide(Rejected(reason=reason))

    def close(self, content: str | None = None) -> "DiffReview":
        """Return the review closed without a decision; ``content`` is the text in the view, None if unchanged."""
        return self._decide(Closed(self.proposed if content is None else content))

    def _decide(self, state: ReviewState) -> "DiffReview":
        return replace(self, state=state) if self.is_open else self


class ReviewTable:
    """Table of the open reviews, oldest first; at most one for each client, exact file path and tab name.

    Methods that change a review return it. None means that nothing changed, so no client needs a notification.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.changed = changed
        """Function that is called after each change."""
        self._by_id: dict[str, DiffReview] = {}
        self._shown: set[str] = set()
        self.unanswered: list[DiffReview] = []
        """Reviews that were open when the companion ended; their agents may still ask about them."""

    def __len__(self) -> int:
        return len(self._by_id)

    def open(self, review: DiffReview) -> DiffReview | None:
        """Add a review to the queue of its file. If it replaces an open review, return that one, closed."""
        former = self.find(review.owner, review.file_path, review.tab_name)
        if former is not None:
            self._remove(former.id)
        self._by_id[review.id] = review
        self.changed()
        return former.close() if former is not None else None

    def hand_over(self, review_id: str, owner: str, title: str, tab_name: str = "") -> DiffReview:
        """Transfer an open review to another client, whose own review of the path the caller has closed."""
        review = replace(self._by_id[review_id], owner=owner, title=title, tab_name=tab_name)
        self._by_id[review_id] = review
        self.changed()
        return review

    def find(self, owner: str, file_path: str, tab_name: str | None = None) -> DiffReview | None:
        """Return the oldest open review of a client for exactly this path and, if given, this tab name."""
        return next(
            (
                review
                for review in self._by_id.values()
                if (review.owner, review.file_path) == (owner, file_path) and tab_name in (None, review.tab_name)
            ),
            None,
        )

    def get(self, review_id: str) -> DiffReview | None:
        """Return an open review by its id."""
        return self._by_id.get(review_id)

    def all(self, owner: str | None = None) -> tuple[DiffReview, ...]:
        """Return the open reviews of one client or of all clients, oldest first."""
        return tuple(r for r in self._by_id.values() if owner is None or r.owner == owner)

    def next(self, target: str) -> DiffReview | None:
        """Return the next review of a file to show; None if there is none, or while another one is shown."""
        queue = [review for review in self._by_id.values() if review.target == target]
        return None if not queue or any(review.id in self._shown for review in queue) else queue[0]

    def show(self, review_id: str) -> None:
        """Record that an open review is shown or about to be, so that :meth:`next` no longer returns it.

        Raises:
            KeyError: the review is not open.
            ValueError: another review of the same file is shown.
        """
        review = self._by_id[review_id]
        if any(other.target == review.target and other.id in self._shown for other in self._by_id.values()):
            raise ValueError(f"another review of {review.target} is shown")
        self._shown.add(review_id)

    def is_shown(self, review_id: str) -> bool:
        """Return whether an open review is shown, and not waiting."""
        return review_id in self._shown

    def accept(self, review_id: str, content: str) -> DiffReview | None:
        """Accept a review, and remove it from the table."""
        review = self._remove(review_id)
        return review.accept(content) if review is not None else None

    def reject(self, review_id: str, reason: str = "") -> DiffReview | None:
        """Reject a review with the user's words, and remove it from the table."""
        review = self._remove(review_id)
        return review.reject(reason) if review is not None else None

    def close(self, review_id: str, content: str | None = None) -> DiffReview | None:
        """Close a review without a decision, and remove it; ``content`` as in :meth:`DiffReview.close`."""
        review = self._remove(review_id)
        return review.close(content) if review is not None else None

    def _remove(self, review_id: str) -> DiffReview | None:
        self._shown.discard(review_id)
        removed = self._by_id.pop(review_id, None)
        if removed is not None:
            self.changed()
        return removed
