"""Port of an attached agent CLI, as the companion sees it; each wire implements it."""

from typing import Protocol

from isthmus.ide.context_tracker import UserFocus
from isthmus.ide.editor import FileMentioned
from isthmus.ide.reviews.review import DiffReview


class Client(Protocol):
    """An attached agent CLI, as the companion sees it. Methods return at once; the wire behind them buffers."""

    @property
    def id(self) -> str:
        """Id that is unique among the attached clients."""
        ...

    @property
    def title(self) -> str:
        """Name to show to the user."""
        ...

    @property
    def connected(self) -> bool:
        """Whether a decision would reach it right now; a client that lost its connection may come back."""
        ...

    @property
    def pid(self) -> int | None:
        """Process id that the client reports; None if its protocol does not carry one."""
        ...

    @property
    def active_at(self) -> float | None:
        """Time of its last use in monotonic seconds; None if it does not take mentions."""
        ...

    def context_changed(self, context: UserFocus) -> None:
        """Send the client a new context: the user looks at something else now."""
        ...

    def mentioned(self, mention: FileMentioned) -> None:
        """Point the agent to a file at the user's request; of several clients only the last used one is called."""
        ...

    def review_closed(self, review: DiffReview) -> None:
        """Notify the client that one of its reviews ended without the user's decision or a request to close it by name.

        The review was replaced by a newer one of the same client, was closed with all others of the client, could not
        be shown when its turn came, or the editor or the companion ends.
        """
        ...

    def discard_decisions(self, file_path: str) -> None:
        """Discard undelivered decisions about this file: the client has just opened a new review of it."""
        ...

    def decided(self, review: DiffReview) -> str | None:
        """Notify the client that the user accepted or rejected one of its reviews.

        Return None, or the reason, to be shown to the user, why the client got a rejection though the user accepted.
        """
        ...
