"""Views of reviews in the editor: opens each in its turn, and closes it, even while it is still being opened."""

import asyncio

from isthmus.ide.editor import Editor, EditorError
from isthmus.ide.reviews.review import DiffReview, ReviewTable


class ReviewViews:
    """Editor views of the reviews in the queue's table."""

    def __init__(self, editor: Editor, reviews: ReviewTable) -> None:
        self._editor = editor
        self._reviews = reviews
        self._showing: dict[str, asyncio.Event] = {}
        self._visible: set[str] = set()

    async def show(self, review: DiffReview) -> None:
        """Show a review, which may already have ended on return.

        Raises:
            EditorError: the editor cannot show it.
        """
        self._reviews.show(review.id)
        shown = self._showing[review.id] = asyncio.Event()
        try:
            await self._editor.open_diff(review)
        finally:
            del self._showing[review.id]
            shown.set()
        self._visible = {visible for visible in self._visible if self._reviews.get(visible) is not None} | {review.id}
        self._reviews.changed()

    def has(self, review: DiffReview) -> bool:
        """Return whether the user can see a review: it is open and due, and the editor has shown it."""
        return review.id in self._visible and self._reviews.is_shown(review.id)

    async def close(self, review_id: str) -> str | None:
        """Close a view and return its text, or None if there is no view.

        A view that the editor is still opening is closed as soon as it is visible; otherwise it would stay open.

        Raises:
            EditorError: the editor does not answer.
        """
        if (shown := self._showing.get(review_id)) is not None:
            await shown.wait()
        return await self._editor.close_diff(review_id)

    async def put_away(self, review_id: str) -> str | None:
        """Close a view and return its text, or None if there is no view or the editor does not answer."""
        try:
            return await self.close(review_id)
        except EditorError:
            return None
