"""A client of the companion that records its events."""

from dataclasses import dataclass, field

from isthmus.ide.context_tracker import UserFocus
from isthmus.ide.editor import FileMentioned
from isthmus.ide.reviews.review import DiffReview


@dataclass
class Recorder:
    """An attached client without a wire; `warning` is its answer to every decision."""

    id: str = "one"
    title: str = "A client"
    connected: bool = True
    warning: str | None = None
    pid: int | None = None
    active_at: float | None = 0.0
    contexts: list[UserFocus] = field(default_factory=list[UserFocus])
    mentions: list[FileMentioned] = field(default_factory=list[FileMentioned])
    closed: list[DiffReview] = field(default_factory=list[DiffReview])
    decisions: list[DiffReview] = field(default_factory=list[DiffReview])
    heard: list[DiffReview] = field(default_factory=list[DiffReview])
    """Every decision it was sent, even one that is out of date since."""

    takes_reasons: bool = False

    def mentioned(self, mention: FileMentioned) -> None:
        self.mentions.append(mention)

    def review_closed(self, review: DiffReview) -> None:
        self.closed.append(review)

    def context_changed(self, context: UserFocus) -> None:
        self.contexts.append(context)

    def discard_decisions(self, file_path: str) -> None:
        self.decisions = [review for review in self.decisions if review.file_path != file_path]

    def decided(self, review: DiffReview) -> str | None:
        self.decisions.append(review)
        self.heard.append(review)
        return self.warning
