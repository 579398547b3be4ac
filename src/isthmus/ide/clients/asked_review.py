"""A review that we requested from an IDE, until its answer: the first answer wins. No I/O.

Each protocol's ``peer`` sends the request and receives the answer. Reviews that agents request from us are in
:mod:`isthmus.ide.reviews.review`.
"""

import asyncio
from typing import TypeAlias

from isthmus.ide.reviews.review import Accepted, Closed, Rejected

Outcome: TypeAlias = Accepted | Rejected | Closed
"""Outcome of a review; ``Closed`` means that it was withdrawn, with the text in the view."""


class AskedReview:
    """A requested review of proposed content; belongs to the running event loop."""

    def __init__(self, proposed: str) -> None:
        self.proposed = proposed
        self.is_shown = False
        """Whether the IDE has reported that the review is visible."""
        self.answered_by = ""
        """The surface where it was answered instead, for the IDE's user; empty if it was not, or is not known."""
        self._outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    @property
    def is_over(self) -> bool:
        """Whether the review was answered, has failed, or is no longer awaited."""
        return self._outcome.done()

    @property
    def decided(self) -> Outcome | None:
        """Answer to the review; None if there is none."""
        over = self._outcome
        return over.result() if over.done() and not over.cancelled() and over.exception() is None else None

    async def outcome(self) -> Outcome:
        """Wait for the answer; raise the error of :meth:`fail`."""
        return await self._outcome

    def accept(self, content: str | None) -> None:
        """Record that the user accepted the review; ``content`` is None if it is unchanged."""
        self._answer(Accepted(self.proposed if content is None else content))

    def reject(self, reason: str = "") -> None:
        """Record that the user rejected the review, with their words if they wrote any."""
        self._answer(Rejected(reason=reason))

    def close(self, content: str | None) -> None:
        """Record that the review was withdrawn with this text in its view; None if the IDE does not report the text."""
        self._answer(Closed(self.proposed if content is None else content))

    def fail(self, error: Exception) -> None:
        """End the wait with an error, because no answer will come."""
        if not self.is_over:
            self._outcome.set_exception(error)

    def leave(self) -> bool:
        """Stop waiting, and return whether the review was still open."""
        if self._outcome.cancelled() or self._outcome.cancel():
            return True
        self._outcome.exception()  # marks it as retrieved, even if the waiting call failed first
        return False

    def _answer(self, outcome: Outcome) -> None:
        if not self.is_over:
            self._outcome.set_result(outcome)
