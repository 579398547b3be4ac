"""Turns of the reviews of a file: they are shown one after the other, and the agent may write in between.

The next review is shown when the last one has ended and its agent has written the file, or has had a moment to do so.
"""

import asyncio
from dataclasses import replace

from isthmus.ide.agent_client import Client
from isthmus.ide.editor import EditorError
from isthmus.ide.reviews.review import Closed, DiffReview, ReviewTable
from isthmus.ide.reviews.review_changes import ReviewChanges
from isthmus.ide.reviews.review_notices import ReviewNotices
from isthmus.ide.reviews.review_owners import ReviewOwners
from isthmus.ide.reviews.review_views import ReviewViews
from isthmus.ide.workspace.workspace_files import FileStamp, wait_until_written
from isthmus.record import record
from isthmus.runtime.running_tasks import RunningTasks


@record
class _Settling:
    """A file that the agent of its last review may be writing, and the wait for that."""

    client_id: str
    wait: asyncio.Task[None]


class ReviewTurns:
    """Turns of the open reviews. Files are named by their real paths, as in :attr:`DiffReview.target`.

    ``settle_seconds`` is the maximum time that an agent has to write a file before its next review is shown.
    """

    def __init__(
        self,
        reviews: ReviewTable,
        views: ReviewViews,
        owners: ReviewOwners,
        notices: ReviewNotices,
        changes: ReviewChanges,
        tasks: RunningTasks,
        settle_seconds: float,
    ) -> None:
        self._reviews = reviews
        self._views = views
        self._owners = owners
        self._notices = notices
        self._changes = changes
        self._tasks = tasks
        self._settle_seconds = settle_seconds
        self._settling: dict[str, _Settling] = {}
        self.is_stopped = False
        """Whether the companion has ended, so that no more reviews are shown."""

    async def show_if_due(self, review: DiffReview, client: Client) -> None:
        """Show a review that was just opened, or leave it to its turn; one that is being shown is waited for.

        Raises:
            EditorError: the editor cannot show it.
        """
        target = review.target
        if (settling := self._settling.get(target)) is not None and settling.client_id == client.id:
            self._stop_settling(target)  # a client that asks again has written its last edit
        following = self._reviews.next(target)
        if target not in self._settling and following is not None and following.id == review.id:
            await self._show(review)
        else:
            await self._views.until_shown(review.id)  # it became due meanwhile, and is being shown

    def advance(self, target: str) -> None:
        """Begin to show the next review of a file, if it is due."""
        self._tasks.start(self._advance(target))

    def settle(self, review: DiffReview, before: FileStamp | None) -> None:
        """Give the client of an ended review a moment to write the file, before other reviews of it are shown.

        ``before`` is the state of the file when the review ended.
        """
        if self._owners.is_connected(review) and self._owners.are_several and not self.is_stopped:
            self._stop_settling(review.target)
            wait = self._tasks.start(self._until_written(review.target, before))
            self._settling[review.target] = _Settling(review.owner, wait)
        else:
            self.advance(review.target)

    def stop(self) -> None:
        """Show no more reviews."""
        self.is_stopped = True
        for target in tuple(self._settling):
            self._stop_settling(target)

    async def _show(self, review: DiffReview) -> None:
        await self._views.show(review)
        if self._reviews.get(review.id) is None:
            self._tasks.start(self._views.put_away(review.id))  # it ended meanwhile

    async def _advance(self, target: str) -> None:
        """Show the next review of a file when it is due; close a review that cannot be shown, and try the next."""
        while target not in self._settling and not self.is_stopped:
            review = self._reviews.next(target)
            if review is None:
                return
            try:
                await self._show(review)
            except EditorError as error:
                closed = self._reviews.close(review.id)
                self._tasks.start(self._views.put_away(review.id))
                if closed is not None:
                    self._owners.notify_closed(replace(closed, state=Closed(closed.proposed, str(error))))
                    self._notices.show(f"the review of {review.file_path} could not be shown: {error}")
            await self._changes.announce()

    async def _until_written(self, target: str, before: FileStamp | None) -> None:
        await wait_until_written(target, before, self._settle_seconds)
        del self._settling[target]
        await self._advance(target)

    def _stop_settling(self, target: str) -> None:
        if (settling := self._settling.pop(target, None)) is not None:
            settling.wait.cancel()
