"""The reviews that ended last, with their texts, for answers that come late. No I/O."""

from collections import OrderedDict

from isthmus.ide.options import ReviewLimits
from isthmus.ide.reviews.review import DiffReview


class EndedReviews:
    """The newest ended reviews, in the order of their ends. The limits apply to their number and their texts."""

    def __init__(self, limits: ReviewLimits) -> None:
        self._limits = limits
        self._newest: OrderedDict[str, DiffReview] = OrderedDict()

    def add(self, review: DiffReview) -> None:
        """Remember an ended review, and forget the oldest ones over the limits."""
        self._newest[review.id] = review
        size = sum(len(ended.proposed) for ended in self._newest.values())
        limits = self._limits
        while len(self._newest) > 1 and (len(self._newest) > limits.kept_decisions or size > limits.kept_characters):
            _, forgotten = self._newest.popitem(last=False)
            size -= len(forgotten.proposed)

    def get(self, review_id: str) -> DiffReview | None:
        """Return an ended review; None if it has not ended, or is forgotten."""
        return self._newest.get(review_id)

    def last_of_file(self, owner: str, file_path: str) -> DiffReview | None:
        """Return the last review of a client for exactly this path."""
        found = [r for r in self._newest.values() if (r.owner, r.file_path) == (owner, file_path)]
        return found[-1] if found else None

    def last_of_tab(self, owner: str, tab_name: str) -> DiffReview | None:
        """Return the last review of a client with this tab name."""
        found = [r for r in self._newest.values() if (r.owner, r.tab_name) == (owner, tab_name)]
        return found[-1] if found else None
