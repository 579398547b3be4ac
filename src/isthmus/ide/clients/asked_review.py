"""A review that we asked of somebody's IDE, while its answer is awaited: the first answer wins.

No I/O. Deliberately not here: asking, and being told (``peer`` of each protocol), and the reviews that others ask of us
(:mod:`isthmus.ide.reviews.review`).
"""

import asyncio
from typing import TypeAlias

from isthmus.ide.reviews.review import Accepted, Closed, Rejected

Outcome: TypeAlias = Accepted | Rejected | Closed
"""How a review ended; ``Closed``: it was taken back, with the text that was in the view."""


class AskedReview:
    """One review, of the content that was proposed; for the running event loop."""

    def __init__(self, proposed: str) -> None:
        self.proposed = proposed
        self.is_shown = False
        """The IDE has said that the user sees it."""
        self._outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    @property
    def is_over(self) -> bool:
        """Whether it was answered, has failed, or is not waited for any more."""
        return self._outcome.done()

    @property
    def decided(self) -> Outcome | None:
        """The answer, where there is one."""
        over = self._outcome
        return over.result() if over.done() and not over.cancelled() and over.exception() is None else None

    async def outcome(self) -> Outcome:
        """Wait for the answer; raises what it failed with."""
        return await self._outcome

    def accept(self, content: str | None) -> None:
        """The user accepted it; None: as it was proposed."""
        self._answer(Accepted(self.proposed if content is None else content))

    def reject(self) -> None:
        """The user rejected it."""
        self._answer(Rejected())

    def close(self, content: str | None) -> None:
        """It was taken back, with this text in its view; None: the IDE does not tell."""
        self._answer(Closed(self.proposed if content is None else content))

    def fail(self, error: Exception) -> None:
        """There will be no answer."""
        if not self.is_over:
            self._outcome.set_exception(error)

    def leave(self) -> bool:
        """It is not waited for any more; whether it was still open."""
        if self._outcome.cancelled() or self._outcome.cancel():
            return True
        self._outcome.exception()  # seen, even when the call that was waited for failed first
        return False

    def _answer(self, outcome: Outcome) -> None:
        if not self.is_over:
            self._outcome.set_result(outcome)
