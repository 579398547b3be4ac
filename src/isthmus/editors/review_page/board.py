"""What waits for the user in an editor that has no screen of its own: reviews, questions, messages.

The reviews' views and the questions as data; whoever shows them (:mod:`review_page`) answers through the methods. A
decision goes out as an event, once. No I/O.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from isthmus.ide.consent import Consent
from isthmus.ide.editor import DiffAccepted, DiffEdited, DiffRejected, EditorEvent
from isthmus.ide.reviews.review import DiffReview

KEPT_MESSAGES: Final = 20


@dataclass(frozen=True, slots=True)
class ReviewView:
    """A review that is shown; ``text`` is the proposal with the user's edits so far."""

    review: DiffReview
    text: str


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """A question that is answered by yes or no."""

    id: str
    title: str
    text: str
    answer: "asyncio.Future[Consent]"


class PendingReviews:
    """``tell`` is called with each edit that is kept and each decision."""

    def __init__(self, tell: Callable[[EditorEvent], None]) -> None:
        self._tell = tell
        self._views: dict[str, ReviewView] = {}
        self._questions: dict[str, PageQuestion] = {}
        self._messages: list[str] = []

    @property
    def views(self) -> tuple[ReviewView, ...]:
        """The open reviews, oldest first."""
        return tuple(self._views.values())

    @property
    def questions(self) -> tuple[PageQuestion, ...]:
        """The open questions, oldest first."""
        return tuple(self._questions.values())

    @property
    def messages(self) -> tuple[str, ...]:
        """What the user was told, oldest first; the newest twenty."""
        return tuple(self._messages)

    def view(self, review_id: str) -> ReviewView | None:
        """Return an open review."""
        return self._views.get(review_id)

    def open(self, review: DiffReview) -> None:
        """Show a review."""
        self._views[review.id] = ReviewView(review, review.proposed)

    def close(self, review_id: str) -> str | None:
        """Take a review away without a decision; its text, None when it is not there."""
        view = self._views.pop(review_id, None)
        return view.text if view is not None else None

    def edit(self, review_id: str, text: str) -> None:
        """Keep what the user made of the proposal, and tell it: the editor may be gone before it is asked for.

        One that is not there any more changes nothing.
        """
        if (view := self._views.get(review_id)) is not None:
            self._views[review_id] = ReviewView(view.review, text)
            self._tell(DiffEdited(review_id, text))

    def accept(self, review_id: str, text: str) -> bool:
        """Accept with this text; False when somebody else answered before."""
        if self._views.pop(review_id, None) is None:
            return False
        self._tell(DiffAccepted(review_id, text))
        return True

    def reject(self, review_id: str) -> bool:
        """Reject; False when somebody else answered before."""
        if self._views.pop(review_id, None) is None:
            return False
        self._tell(DiffRejected(review_id))
        return True

    async def ask(self, title: str, text: str) -> Consent:
        """Ask, and wait for the answer; cancelling takes the question away."""
        question = PageQuestion(uuid4().hex, title, text, asyncio.get_running_loop().create_future())
        self._questions[question.id] = question
        try:
            return await question.answer
        finally:
            self._questions.pop(question.id, None)

    def answer(self, question_id: str, answer: Consent) -> bool:
        """Answer a question; False when it is not open any more."""
        question = self._questions.get(question_id)
        if question is None or question.answer.done():
            return False
        question.answer.set_result(answer)
        return True

    def say(self, text: str) -> None:
        """Keep a message for the user."""
        self._messages.append(text)
        del self._messages[:-KEPT_MESSAGES]

    def clear(self) -> None:
        """Take everything away; open questions are answered by no, nothing else is decided."""
        self._views.clear()
        for question in self._questions.values():
            if not question.answer.done():
                question.answer.set_result(Consent.NO)
