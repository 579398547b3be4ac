"""A review that we asked an IDE for and whose answer we await: the first answer wins. No I/O.

Each protocol's ``peer`` asks and receives the answer; reviews that others ask of us are in
:mod:`isthmus.ide.reviews.review`.
"""

import asyncio
from typing import TypeAlias

from isthmus.ide.reviews.review import Accepted, Closed, Rejected

Outcome: TypeAlias = Accepted | Rejected | Closed
"""Outcome of a review; ``Closed``: it was withdrawn, with the text that was in the view."""


class AskedReview:
    """One review of a proposed content; for the running event loop."""

    def __init__(self, proposed: str) -> None:
        self.proposed = proposed
        self.is_shown = False
        """Whether the IDE has reported that the user sees it."""
        self._outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    @property
    def is_over(self) -> bool:
        """Whether it was answered, has failed, or has no waiter any more."""
        return self._outcome.done()

    @property
    def decided(self) -> Outcome | None:
        """Answer, if there is one."""
        over = self._outcome
        return over.result() if over.done() and not over.cancelled() and over.exception() is None else None

    async def outcome(self) -> Outcome:
        """Wait for the answer; raise the error of :meth:`fail`."""
        return await self._outcome

    def accept(self, content: str | None) -> None:
        """Note that the user accepted it; None means as it was proposed."""
        self._answer(Accepted(self.proposed if content is None else content))

    def reject(self) -> None:
        """Note that the user rejected it."""
        self._answer(Rejected())

    def close(self, content: str | None) -> None:
        """Note that it was withdrawn with this text in its view; None if the IDE does not report the text."""
        self._answer(Closed(self.proposed if content is None else content))

    def fail(self, error: Exception) -> None:
        """End the wait with an error, because no answer will come."""
        if not self.is_over:
            self._outcome.set_exception(error)

    def leave(self) -> bool:
        """Stop waiting, and return whether it was still open."""
        if self._outcome.cancelled() or self._outcome.cancel():
            return True
        self._outcome.exception()  # marks it as retrieved, also if the waiting call failed first
        return False

    def _answer(self, outcome: Outcome) -> None:
        if not self.is_over:
            self._outcome.set_result(outcome)
