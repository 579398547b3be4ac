"""Ends of the newest reviews and questions, and who ended them, for pages that showed them. No I/O."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from isthmus.ide.reviews.review import Accepted, DiffReview, Rejected
from isthmus.record import record

MAXIMUM_OUTCOMES: Final = 50
"""Maximum number of outcomes that are remembered; a further one replaces the oldest."""


@record
class Outcome:
    """End of a review or a question at a Unix time ``at`` in seconds, without its texts.

    ``about`` is the path of the review's file or the question's title. ``decision`` is "accepted" or "rejected" for a
    review, "yes", "session" or "no" for a question, and "closed" for either without a decision of the user. ``by`` is
    the device, command, editor or agent that ended it, for the user; empty if that is not known. ``problem`` is the
    reason if an acceptance was sent as a rejection.
    """

    id: str
    about: str
    agent: str
    decision: str
    by: str
    at: float
    problem: str = ""


class Outcomes:
    """The newest outcomes. ``now`` returns the Unix time in seconds; ``changed`` is called after each note."""

    def __init__(self, now: Callable[[], float] = time.time, changed: Callable[[], None] = lambda: None) -> None:
        self._now = now
        self._changed = changed
        self._newest: OrderedDict[str, Outcome] = OrderedDict()

    @property
    def all(self) -> tuple[Outcome, ...]:
        """Outcomes, oldest first."""
        return tuple(self._newest.values())

    def get(self, ended_id: str) -> Outcome | None:
        """Return the outcome of a review or question; None if it has not ended, or is forgotten."""
        return self._newest.get(ended_id)

    def note_review(self, review: DiffReview, by: str) -> None:
        """Note the end of a review; one that the user did not decide was ended by its agent."""
        match review.state:
            case Accepted():
                self.note(review.id, review.file_path, review.title, "accepted", by)
            case Rejected(instead=problem):
                self.note(review.id, review.file_path, review.title, "rejected", by, problem)
            case _:
                self.note(review.id, review.file_path, review.title, "closed", review.title)

    def note(self, ended_id: str, about: str, agent: str, decision: str, by: str, problem: str = "") -> None:
        """Note an end; only the first one of an id counts."""
        self._newest.setdefault(ended_id, Outcome(ended_id, about, agent, decision, by, self._now(), problem))
        while len(self._newest) > MAXIMUM_OUTCOMES:
            self._newest.popitem(last=False)
        self._changed()
