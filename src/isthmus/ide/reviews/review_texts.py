"""Texts that users type into views of reviews: known while a review is open, and kept as files if it ends undecided."""

import asyncio
import logging
from collections.abc import Mapping
from types import MappingProxyType

from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.review import DiffReview
from isthmus.ide.reviews.review_notices import ReviewNotices
from isthmus.ide.reviews.reviewed_file import text_on_disk
from isthmus.ide.workspace.workspace_files import FileStamp, wait_until_written

_log = logging.getLogger(__name__)


class ReviewTexts:
    """Texts in the views of open reviews, as far as the editor has reported edits."""

    def __init__(self, kept: KeptTexts, notices: ReviewNotices, settle_seconds: float) -> None:
        self._kept = kept
        self._notices = notices
        self._settle_seconds = settle_seconds
        self._typed: dict[str, str] = {}

    @property
    def typed(self) -> Mapping[str, str]:
        """Texts that were typed, by review id."""
        return MappingProxyType(self._typed)

    def shown(self, review: DiffReview) -> str:
        """Return the text in the view of an open review."""
        return self._typed.get(review.id, review.proposed)

    def note(self, review_id: str, text: str) -> None:
        """Note the text in a view; it is the only copy if the editor crashes."""
        self._typed[review_id] = text

    def forget(self, review_id: str) -> str | None:
        """Forget the text in a view, and return it; None if nothing was typed."""
        return self._typed.pop(review_id, None)

    async def keep(self, review: DiffReview, text: str) -> None:
        """Keep a text that differs from the proposal, and show the user its path."""
        if text == review.proposed:
            return
        try:
            kept = await asyncio.to_thread(self._kept.keep, review, text)
        except OSError as error:
            message = f"what you typed into the review of {review.file_path} is lost, it could not be kept: {error}"
        else:
            message = str(kept)
        _log.warning("%s", message)
        self._notices.show(message)

    async def keep_unless_written(self, review: DiffReview, text: str, before: FileStamp | None) -> None:
        """Keep a text that was sent to the client, unless the client writes it: clients may refuse their own edit."""
        await wait_until_written(review.target, before, self._settle_seconds)
        if await asyncio.to_thread(text_on_disk, review.target) != text:
            await self.keep(review, text)
