"""Views of reviews in the editor: opens each in its turn, and closes it, even while it is still being opened.

It knows the state of the file that each view shows, so that an answer to an older one is recognised.
"""

import asyncio
import os
from dataclasses import replace

from isthmus.ide.editor import Editor, EditorError
from isthmus.ide.reviews.review import DiffReview, ReviewTable
from isthmus.ide.reviews.reviewed_file import digest_on_disk, text_on_disk


class ReviewViews:
    """Editor views of the reviews in the queue's table."""

    def __init__(self, editor: Editor, reviews: ReviewTable) -> None:
        self._editor = editor
        self._reviews = reviews
        self._showing: dict[str, asyncio.Event] = {}
        self._visible: set[str] = set()
        self._bases: dict[str, str | None] = {}
        """Digests of the files as they were when the views were opened, by review."""
        self._reading = asyncio.Lock()

    async def show(self, review: DiffReview) -> None:
        """Show a review, which may already have ended on return.

        Raises:
            EditorError: the editor cannot show it.
        """
        self._reviews.show(review.id)
        await self._open(review)

    async def _open(self, review: DiffReview) -> None:
        shown = self._showing[review.id] = asyncio.Event()
        try:
            # Before the editor reads the file: if it changes meanwhile, the view is drawn once too often.
            async with self._reading:  # in turn, so that the editor is asked in the order of the agents' requests
                self._bases[review.id] = await asyncio.to_thread(digest_on_disk, review.target)
            await self._editor.open_diff(review)
        finally:
            del self._showing[review.id]
            shown.set()
        self._visible = {visible for visible in self._visible if self._reviews.get(visible) is not None} | {review.id}
        self._bases = {each: base for each, base in self._bases.items() if self._reviews.get(each) is not None}
        self._reviews.changed()

    async def is_outdated(self, review: DiffReview, content: str) -> bool:
        """Return whether the file has changed since the view was opened, to something other than ``content``.

        A file that was deleted has nothing that an acceptance would overwrite.
        """
        if review.id not in self._bases:
            return False  # it was not shown in the editor
        now = await asyncio.to_thread(digest_on_disk, review.target)
        if now == self._bases[review.id] or not await asyncio.to_thread(os.path.lexists, review.target):
            return False
        return await asyncio.to_thread(text_on_disk, review.target) != content

    async def show_again(self, review: DiffReview, text: str) -> None:
        """Show a review against the file as it is now, with ``text`` as the proposal, in place of its view.

        Raises:
            EditorError: the editor cannot show it.
        """
        self._visible.discard(review.id)  # nobody can see it until the editor has opened the new view
        await self.put_away(review.id)
        await self._open(replace(review, proposed=text))

    def has(self, review: DiffReview) -> bool:
        """Return whether the user can see a review: it is open and due, and the editor has shown it."""
        return review.id in self._visible and self._reviews.is_shown(review.id)

    async def until_shown(self, review_id: str) -> None:
        """Wait until the editor has shown a review that it is opening now; return at once for others."""
        if (shown := self._showing.get(review_id)) is not None:
            await shown.wait()

    async def close(self, review_id: str) -> str | None:
        """Close a view and return its text, or None if there is no view.

        A view that the editor is still opening is closed as soon as it is visible; otherwise it would stay open.

        Raises:
            EditorError: the editor does not answer.
        """
        await self.until_shown(review_id)
        return await self._editor.close_diff(review_id)

    async def put_away(self, review_id: str) -> str | None:
        """Close a view and return its text, or None if there is no view or the editor does not answer."""
        try:
            return await self.close(review_id)
        except EditorError:
            return None
