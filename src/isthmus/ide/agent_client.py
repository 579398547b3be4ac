"""Port of an agent CLI that is attached to the companion, which each wire implements, and of its observer."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from isthmus.ide.context_tracker import UserFocus
from isthmus.ide.editor import FileMentioned
from isthmus.ide.reviews.review import DiffReview


class Client(Protocol):
    """An agent CLI that is attached to the companion. Methods return at once; the wire buffers what it sends."""

    @property
    def id(self) -> str:
        """Unique id among the attached clients."""
        ...

    @property
    def title(self) -> str:
        """Name to show to the user."""
        ...

    @property
    def connected(self) -> bool:
        """Whether a decision would reach the client now; a client that lost its connection may reconnect."""
        ...

    @property
    def pid(self) -> int | None:
        """Process id that the client reports; None if its protocol does not carry one."""
        ...

    @property
    def active_at(self) -> float | None:
        """Time of the client's last use in monotonic seconds; None if it does not accept mentions."""
        ...

    @property
    def takes_reasons(self) -> bool:
        """Whether the client passes the user's words about a rejection on to its agent."""
        ...

    def context_changed(self, context: UserFocus) -> None:
        """Send the client the user's new focus."""
        ...

    def mentioned(self, mention: FileMentioned) -> None:
        """Point the agent to a file at the user's request. Only the most recently used client is called."""
        ...

    def review_closed(self, review: DiffReview) -> None:
        """Notify the client that one of its reviews ended, neither decided by the user nor closed by name.

        The review was replaced by a newer one of the same client, was closed with the client's other reviews, or could
        not be shown when its turn came; or the editor or the companion is shutting down.
        """
        ...

    def discard_decisions(self, file_path: str) -> None:
        """Discard undelivered decisions about a file, because the client has just opened a new review of it."""
        ...

    def decided(self, review: DiffReview) -> str | None:
        """Notify the client that the user accepted or rejected one of its reviews.

        If the client received a rejection although the user accepted, return the reason, to be shown to the user.
        Otherwise return None.
        """
        ...


@runtime_checkable
class AgentObserver(Protocol):
    """An editor that tells the user which agents are attached."""

    def agents_changed(self, titles: Mapping[str, str]) -> None:
        """Take the titles of all attached agents by id, and return at once."""
        ...
