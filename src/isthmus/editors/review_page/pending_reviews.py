"""Reviews, questions and messages that wait for the user of an editor without a screen of its own, as data. No I/O.

:mod:`isthmus.editors.review_page.page` shows them and answers through the methods.
"""

import asyncio
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from isthmus.ide.editor import Consent, DiffAccepted, DiffEdited, DiffRejected, EditorEvent
from isthmus.ide.reviews.review import DiffReview
from isthmus.record import record

MAXIMUM_MESSAGES: Final = 20


@record
class ReviewView:
    """An open review; ``text`` is the proposal with the user's edits so far."""

    review: DiffReview
    text: str


@record
class PageQuestion:
    """An open question; ``answer`` is set once."""

    id: str
    title: str
    text: str
    answer: "asyncio.Future[Consent]"


class PendingReviews:
    """The open reviews and questions, and the last messages. ``emit`` gets an event for each edit and each decision."""

    def __init__(self, emit: Callable[[EditorEvent], None]) -> None:
        self._emit = emit
        self._views: dict[str, ReviewView] = {}
        self._questions: dict[str, PageQuestion] = {}
        self._messages: list[str] = []

    @property
    def views(self) -> tuple[ReviewView, ...]:
        """Open reviews, oldest first."""
        return tuple(self._views.values())

    @property
    def questions(self) -> tuple[PageQuestion, ...]:
        """Open questions, oldest first."""
        return tuple(self._questions.values())

    @property
    def messages(self) -> tuple[str, ...]:
        """Messages to the user, oldest first; the newest twenty."""
        return tuple(self._messages)

    def view(self, review_id: str) -> ReviewView | None:
        """Return an open review; None if it was answered or taken back."""
        return self._views.get(review_id)

    def open(self, review: DiffReview) -> None:
        """Open a review."""
        self._views[review.id] = ReviewView(review, review.proposed)

    def close(self, review_id: str) -> str | None:
        """Close a review without a decision, and return its text; None if it is not open."""
        view = self._views.pop(review_id, None)
        return view.text if view is not None else None

    def edit(self, review_id: str, text: str) -> None:
        """Replace the text of a review, if it is open, and report it at once: the editor may be gone before its end."""
        if (view := self._views.get(review_id)) is not None:
            self._views[review_id] = ReviewView(view.review, text)
            self._emit(DiffEdited(review_id, text))

    def accept(self, review_id: str, text: str) -> bool:
        """Accept a review with this text; return False if it is not open any more."""
        if self._views.pop(review_id, None) is None:
            return False
        self._emit(DiffAccepted(review_id, text))
        return True

    def reject(self, review_id: str) -> bool:
        """Reject a review; return False if it is not open any more."""
        if self._views.pop(review_id, None) is None:
            return False
        self._emit(DiffRejected(review_id))
        return True

    async def ask(self, title: str, text: str) -> Consent:
        """Ask the user and wait for the answer. Cancelling closes the question."""
        question = PageQuestion(uuid4().hex, title, text, asyncio.get_running_loop().create_future())
        self._questions[question.id] = question
        try:
            return await question.answer
        finally:
            self._questions.pop(question.id, None)

    def answer(self, question_id: str, answer: Consent) -> bool:
        """Answer a question; return False if it is not open any more."""
        question = self._questions.get(question_id)
        if question is None or question.answer.done():
            return False
        question.answer.set_result(answer)
        return True

    def show_message(self, text: str) -> None:
        """Keep a message for the user; of too many the oldest is dropped."""
        self._messages.append(text)
        del self._messages[:-MAXIMUM_MESSAGES]

    def clear(self) -> None:
        """Close the reviews without a decision, and answer the questions with no."""
        self._views.clear()
        for question in self._questions.values():
            if not question.answer.done():
                question.answer.set_result(Consent.NO)
