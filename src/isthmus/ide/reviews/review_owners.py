"""The clients that asked for reviews, as long as they are attached."""

from collections.abc import Mapping

from isthmus.ide.agent_client import Client
from isthmus.ide.reviews.review import DiffReview


class ReviewOwners:
    """Owners of reviews. ``clients`` is the companion's live mapping of attached clients by id."""

    def __init__(self, clients: Mapping[str, Client]) -> None:
        self._clients = clients

    @property
    def are_several(self) -> bool:
        """Whether more than one client is attached."""
        return len(self._clients) > 1

    def is_attached(self, client: Client) -> bool:
        """Return whether a client is still attached."""
        return client.id in self._clients

    def is_connected(self, review: DiffReview) -> bool:
        """Return whether a decision would reach the client of a review now."""
        owner = self._clients.get(review.owner)
        return owner is not None and owner.connected

    def takes_reasons(self, review: DiffReview) -> bool:
        """Return whether the user's words about a rejection would reach the agent of a review."""
        owner = self._clients.get(review.owner)
        return owner is not None and owner.takes_reasons

    def send_decision(self, review: DiffReview) -> str | None:
        """Send a decision to the client of a review, if it is attached, as :meth:`Client.decided` does."""
        owner = self._clients.get(review.owner)
        return owner.decided(review) if owner is not None else None

    def notify_closed(self, review: DiffReview) -> None:
        """Tell the client of a review, if it is attached, that it was closed without a decision."""
        if (owner := self._clients.get(review.owner)) is not None:
            owner.review_closed(review)
