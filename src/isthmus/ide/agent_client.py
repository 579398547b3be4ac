"""An attached agent CLI, as the companion sees it. A port: each wire has its own."""

from typing import Protocol

from isthmus.ide.context_tracker import UserFocus
from isthmus.ide.editor import FileMentioned
from isthmus.ide.reviews.review import DiffReview


class Client(Protocol):
    """An attached agent CLI, as the companion sees it. Methods return at once; the wire behind them buffers."""

    @property
    def id(self) -> str:
        """Unique among the attached clients."""
        ...

    @property
    def title(self) -> str:
        """What to call it to the user."""
        ...

    @property
    def connected(self) -> bool:
        """Whether it would hear of a decision right now; one that lost its connection may come back."""
        ...

    @property
    def pid(self) -> int | None:
        """The id of its process, as it says itself; None where its protocol has no word for it."""
        ...

    @property
    def active_at(self) -> float | None:
        """When it was used last, in monotonic seconds; None: it is told of no mentions."""
        ...

    def context_changed(self, context: UserFocus) -> None:
        """The user looks at something else now."""
        ...

    def mentioned(self, mention: FileMentioned) -> None:
        """The user wants this agent to look at a file: of several the one that was used last."""
        ...

    def review_closed(self, review: DiffReview) -> None:
        """A review of this client ended without the user's decision, and was not asked for by its name.

        It was replaced by a newer one of the same client, was closed with all others of the client, could not be
        shown when its turn came, or the editor or the companion ends.
        """
        ...

    def asked_again(self, file_path: str) -> None:
        """It opens a review of this file: decisions of older ones that it may not have heard are out of date."""
        ...

    def decided(self, review: DiffReview) -> str | None:
        """Return the user accepted or rejected a review of this client.

        The text, if any, is why the client was told of a rejection though the user accepted; it is shown to them.
        """
        ...
