"""Answers of the user to reviews, from the editor, a terminal or a page: the first one counts, and reaches the client.

Nothing is decided about a file or a text that has changed since it was shown.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

from isthmus.ide.editor import Editor, EditorError
from isthmus.ide.reviews.review import Accepted, Closed, DiffReview, Rejected
from isthmus.ide.reviews.review_queue import ReviewQueue
from isthmus.ide.workspace.workspace_files import FileStamp

_log = logging.getLogger(__name__)


class ReviewAnswers:
    """Answers to the reviews of a queue, whose views are in ``editor``.

    ``accepted`` is called with the real path and the text of each accepted edit, before the agent has it.
    """

    def __init__(
        self, queue: ReviewQueue, editor: Editor, accepted: Callable[[str, str], None] = lambda target, text: None
    ) -> None:
        self._queue = queue
        self._reviews = queue.reviews
        self._views = queue.views
        self._texts = queue.texts
        self._turns = queue.turns
        self._notices = queue.notices
        self._editor = editor
        self._accepted = accepted

    async def accept(
        self,
        review_id: str,
        content: str | None = None,
        *,
        by: str = "",
        has_seen_file: bool = False,
        seen_text: str | None = None,
    ) -> DiffReview | None:
        """Accept on behalf of the user, with the text in the view or ``content``; return None if already decided.

        ``by`` is the place where the user decided, for those who look elsewhere. ``has_seen_file``: the user has seen
        the file there as it is now, whatever the editor shows. ``seen_text`` is the text of which ``content`` is a
        part; without it the text in the view does not matter.

        Raises:
            EditorError: the editor does not answer, or the file or ``seen_text`` has changed since it was shown; the
                review stays open.
        """
        was_shown = self._reviews.is_shown(review_id)
        text = await self._take_for_answer(review_id)
        if text is None:
            return None
        review = self._reviews.get(review_id)
        chosen = text if content is None else content
        if review is not None and was_shown and not has_seen_file and await self._views.is_outdated(review, chosen):
            await self._show_changed(review, text, _changed_text(review))
            raise EditorError(_changed_text(review))
        if review is not None and was_shown and seen_text not in (None, text):
            await self._show_changed(review, text, _edited_text(review))
            raise EditorError(_edited_text(review))
        decided = await self._decide(self._reviews.accept(review_id, chosen), by)
        if decided is not None and isinstance(decided.state, Accepted) and was_shown and by:
            self._notices.tell_end(decided, f"accepted by {by}")
        return decided

    async def reject(self, review_id: str, *, by: str = "", reason: str = "") -> DiffReview | None:
        """Reject on behalf of the user; return None if already decided. ``by`` is as in :meth:`accept`.

        ``reason`` has the user's words to an agent that takes them, see :meth:`ReviewOwners.takes_reasons`.

        Raises:
            EditorError: the editor does not answer; the review stays open.
        """
        was_shown = self._reviews.is_shown(review_id)
        text = await self._take_for_answer(review_id)
        if text is None:
            return None
        decided = await self._decide(self._reviews.reject(review_id, reason), by)
        if decided is not None:
            if was_shown and by:
                self._notices.tell_end(decided, f"rejected by {by}")
            await self._texts.keep(decided, text)
        return decided

    async def accepted_in_editor(self, review_id: str, content: str) -> None:
        """Handle the editor's event that the user accepted a review."""
        review = self._reviews.get(review_id)
        if review is not None and await self._views.is_outdated(review, content):
            await self._show_changed(review, content, _changed_text(review))
            return
        if await self._decide(self._reviews.accept(review_id, content), self._editor_name) is None:
            ended = self._queue.ended.get(review_id)
            # Its client left or asked again at the same moment. If it was accepted elsewhere, the client has the text.
            if ended is not None and ended.state != Closed(content) and not isinstance(ended.state, Accepted):
                self._texts.forget(review_id)
                await self._texts.keep(ended, content)

    async def rejected_in_editor(self, review_id: str, content: str | None) -> None:
        """Handle the editor's event that the user rejected; ``content`` is the text in the view, if reported."""
        content = self._texts.typed.get(review_id) if content is None else content
        decided = await self._decide(self._reviews.reject(review_id), self._editor_name)
        if decided is not None and content is not None:
            await self._texts.keep(decided, content)

    def typed(self, review_id: str, content: str) -> None:
        """Handle the editor's event that the user edited the text in a view."""
        if self._reviews.get(review_id) is not None:
            self._texts.note(review_id, content)

    async def _show_changed(self, review: DiffReview, text: str, message: str) -> None:
        """Show a review anew that has changed while it was open; nothing is decided, and the user is told."""
        if text != review.proposed:
            self._texts.note(review.id, text)
        self._notices.show(message)
        try:
            await self._views.show_again(review, text)
        except EditorError as error:
            _log.warning("the review of %s could not be shown again: %s", review.file_path, error)
            await self._queue.close(review.id)

    async def _take_for_answer(self, review_id: str) -> str | None:
        """Close the view for an answer from outside the editor; return its text, or None if already decided.

        Raises:
            EditorError: the editor does not answer; the review is unchanged.
        """
        review = self._reviews.get(review_id)
        if review is None:
            return None
        if not self._reviews.is_shown(review_id):
            return review.proposed
        text = await self._views.close(review_id)
        if text is None and await self._queue.is_decided_soon(review):
            return None  # answered in the editor a moment ago
        return self._texts.shown(review) if text is None else text

    @property
    def _editor_name(self) -> str:
        return self._editor.identity.display_name

    async def _decide(self, review: DiffReview | None, by: str) -> DiffReview | None:
        if review is None:
            return None
        before = FileStamp.of(review.target)
        self._texts.forget(review.id)
        if isinstance(review.state, Accepted):
            self._accepted(review.target, review.state.content)
        warning = self._queue.owners.send_decision(review)
        if warning is not None:
            review = replace(review, state=Rejected(warning))
        self._queue.remember(review, by)
        if isinstance(review.state, Accepted):
            self._turns.settle(review, before)
            if not self._queue.owners.is_connected(review):  # its client may never reconnect
                await self._texts.keep(review, review.state.content)
        else:
            self._turns.advance(review.target)
        await self._queue.changes.announce()
        if warning is not None:
            self._notices.show(warning)
        return review


def _changed_text(review: DiffReview) -> str:
    name = PurePath(review.file_path).name
    return f"{name} has changed on disk while its review was open: nothing is decided; look at it once more"


def _edited_text(review: DiffReview) -> str:
    name = PurePath(review.file_path).name
    return f"the proposal for {name} was edited after its hunks were listed: nothing is decided; list them once more"
