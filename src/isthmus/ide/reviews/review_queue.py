"""Queue of proposed edits for the user: opens reviews at the request of clients, and ends those without an answer.

Text that the user typed into a review that ends without their decision is kept as a file. Independent of the protocols.
The reviews of a file are shown one after the other (:mod:`isthmus.ide.reviews.review_turns`); the user's answers are in
:mod:`isthmus.ide.reviews.review_answers`. The agent writes the reviewed file.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import uuid4

from isthmus.ide.agent_client import Client
from isthmus.ide.editor import Editor, EditorError
from isthmus.ide.options import ReviewLimits
from isthmus.ide.reviews.ended_reviews import EndedReviews
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.outcomes import Outcomes
from isthmus.ide.reviews.review import Accepted, Closed, DiffReview, ReviewTable
from isthmus.ide.reviews.review_changes import ReviewChanges
from isthmus.ide.reviews.review_notices import ReviewNotices
from isthmus.ide.reviews.review_owners import ReviewOwners
from isthmus.ide.reviews.review_texts import ReviewTexts
from isthmus.ide.reviews.review_turns import ReviewTurns
from isthmus.ide.reviews.review_views import ReviewViews
from isthmus.ide.workspace.workspace_files import FileStamp, target_of
from isthmus.runtime.running_tasks import RunningTasks


class ReviewQueue:
    """Queue of the reviews of all clients. ``clients`` is the companion's live mapping of attached clients by id.

    ``changed`` is called after each change of the reviews and of their outcomes.
    """

    def __init__(
        self,
        editor: Editor,
        clients: Mapping[str, Client],
        kept: KeptTexts,
        limits: ReviewLimits = ReviewLimits(),
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._limits = limits
        self._tasks = RunningTasks()
        self.changes = ReviewChanges()
        """Announcements that a review was opened, shown or ended."""
        self.reviews = ReviewTable(changed)
        """The open reviews."""
        self.views = ReviewViews(editor, self.reviews)
        self.owners = ReviewOwners(clients)
        self.notices = ReviewNotices(editor, self._tasks)
        seconds = limits.settle_seconds
        self.texts = ReviewTexts(kept, self.notices, seconds)
        self.turns = ReviewTurns(
            self.reviews, self.views, self.owners, self.notices, self.changes, self._tasks, seconds
        )
        self.listed_states: dict[str, str] = {}
        """Digests of what the user's terminal listed last of open reviews, by review id."""
        self.ended = EndedReviews(limits)
        self.outcomes = Outcomes(changed=changed)
        """Ends of the newest reviews, and who ended them."""

    @property
    def is_stopped(self) -> bool:
        """Whether the companion has ended, so that no more reviews are opened."""
        return self.turns.is_stopped

    # Requests of clients.

    async def open(self, client: Client, file_path: str, proposed: str, tab_name: str = "") -> DiffReview:
        """Show a proposed edit; return when it is visible, or queued behind another review of the same file.

        An earlier review of the same client, path and tab name is closed. A restarted agent asks again as another
        client and receives the open view, with the user's edits, instead of a second one.

        Raises:
            EditorError: the edit cannot be shown.
        """
        if self.is_stopped:
            raise EditorError("openDiff: the companion ends; ask in your own terminal")
        if not self.owners.is_attached(client):  # it left during its call and could not close the view
            raise EditorError("openDiff: the agent that asked has left")
        target = target_of(file_path)
        if (left := self._find_orphan(client, file_path, proposed)) is not None:
            return self.reviews.hand_over(left.id, client.id, client.title, tab_name)
        replaced = self.reviews.find(client.id, file_path, tab_name)
        maximum = self._limits.maximum_open
        if replaced is None and len(self.reviews) >= maximum:
            raise EditorError(f"openDiff: {maximum} reviews are open already; decide or close some first")
        review = DiffReview(
            uuid4().hex, file_path, proposed, client.id, client.title, tab_name, target, opened=time.time()
        )
        was_shown = replaced is not None and self.reviews.is_shown(replaced.id)
        former = self.reviews.open(review)
        if former is not None:
            self.remember(former)  # the user's answer may be under way
        client.discard_decisions(file_path)
        try:
            if former is not None:
                try:
                    former = await self._put_away(former, was_shown)
                finally:
                    client.review_closed(former)
            await self.turns.show_if_due(review, client)
        except BaseException:
            # Also if the client cancelled its call: a view that appears afterwards is closed.
            self.reviews.close(review.id)
            self._tasks.start(self.views.put_away(review.id))
            raise
        finally:
            self.turns.advance(target)
        await self.changes.announce()
        return review

    async def close_oldest(self, client: Client, file_path: str, answered_by: str = "") -> DiffReview | None:
        """Close the oldest review of a file, and return it with its final text; None if there was none.

        ``answered_by`` is the surface where the user answered instead, as the client claims; empty if it does not say.
        If the user decides at the same moment, the returned review holds their decision.
        """
        review = self.reviews.find(client.id, file_path)
        if review is None:
            ended = self.ended.last_of_file(client.id, file_path)
            # Only the last one: an answer to an earlier proposal does not apply to one withdrawn since.
            if ended is None or isinstance(ended.state, Closed):
                return None
            self._tell_answerer(ended, answered_by)
            return ended
        before = FileStamp.of(review.target)
        closed = await self._withdraw(review, answered_by)
        if closed is not None and isinstance(closed.state, Closed) and closed.state.content != closed.proposed:
            self._tasks.start(self.texts.keep_unless_written(closed, closed.state.content, before))
        return closed

    async def close(self, review_id: str, answered_by: str = "") -> DiffReview | None:
        """Close a review whose client cannot receive its text; text that the user typed is kept as a file.

        ``answered_by`` is as in :meth:`close_oldest`. Return the ended review, also if it ended earlier; None if the
        review is unknown or forgotten.
        """
        review = self.reviews.get(review_id)
        closed = await self._withdraw(review, answered_by) if review is not None else self.ended.get(review_id)
        if review is not None and closed is not None and isinstance(closed.state, Closed):
            # The protocol has no message that would send the typed text to the client.
            await self.texts.keep(closed, closed.state.content)
        return closed

    def decided_too_late(self, owner: str, tab_name: str, answered_by: str) -> None:
        """Tell the user who answered before the decision about the last review of a client with this tab name."""
        if (decided := self.ended.last_of_tab(owner, tab_name)) is not None:
            self._tell_answerer(decided, answered_by)

    async def close_all(self, owner: str) -> int:
        """Close all reviews of a client without a decision, and return their number. Typed text is kept as files.

        An attached client is notified of each by :meth:`Client.review_closed`.
        """
        reviews = self.reviews.all(owner)
        ended = [await self._end(review) for review in reviews]
        for target in dict.fromkeys(review.target for review in reviews):
            self.turns.advance(target)
        await self.changes.announce()
        return sum(review is not None for review in ended)

    async def wait(self, timeout: float) -> tuple[DiffReview, ...]:
        """Wait at most ``timeout`` seconds for an open review; return the open reviews."""
        await self.changes.wait_for(lambda: len(self.reviews) > 0, timeout)
        return self.reviews.all()

    def is_visible(self, review: DiffReview) -> bool:
        """Return whether the user can see a review; otherwise it is queued or has ended."""
        return self.views.has(review)

    async def stop(self) -> None:
        """End all reviews: close the views, notify the clients, and keep typed text. No more reviews are accepted."""
        self.turns.stop()
        ending = [asyncio.create_task(self._end(review)) for review in self.reviews.all()]
        if ending:
            await asyncio.wait(ending, timeout=self._limits.shutdown_seconds)
            for task in ending:  # if the editor hangs, the last text that it reported is kept
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
        await self.changes.announce()
        await self._tasks.end(self._limits.shutdown_seconds)

    def _find_orphan(self, client: Client, file_path: str, proposed: str) -> DiffReview | None:
        """Return a review of the same proposal by the same kind of agent, if its agent is no longer connected."""
        if self.reviews.find(client.id, file_path) is not None:
            return None
        for review in self.reviews.all():
            is_same = (review.file_path, review.proposed, review.title) == (file_path, proposed, client.title)
            if is_same and not self.owners.is_connected(review):
                return review
        return None

    # Ending.

    async def _withdraw(self, review: DiffReview, answered_by: str) -> DiffReview | None:
        """Close a review at its client's request; if the user answers at the same moment, return the decided review."""
        content = self.texts.typed.get(review.id)
        before = FileStamp.of(review.target)
        was_shown = self.reviews.is_shown(review.id)
        if was_shown:
            shown = await self.views.put_away(review.id)
            if shown is None and await self.is_decided_soon(review):
                if (ended := self.ended.get(review.id)) is not None:
                    self._tell_answerer(ended, answered_by)
                return ended
            content = content if shown is None else shown
        closed = self.reviews.close(review.id, content)
        if closed is None:
            return self.ended.get(review.id)
        self.texts.forget(review.id)
        self.remember(closed)
        if was_shown:
            self._tell_answerer(closed, answered_by)
        self.turns.settle(closed, before)  # it was answered in the client's own terminal
        await self.changes.announce()
        return closed

    async def _end(self, review: DiffReview) -> DiffReview | None:
        """Close a review without an answer, and notify its client if attached; return None if it has already ended."""
        was_shown = self.reviews.is_shown(review.id)
        closed = self.reviews.close(review.id)  # first, so that later answers do not count
        if closed is None:
            return None
        if self.is_stopped:
            self.reviews.unanswered.append(closed)
        self.remember(closed)
        self.owners.notify_closed(closed)
        return await self._put_away(closed, was_shown)

    async def _put_away(self, closed: DiffReview, was_shown: bool) -> DiffReview:
        """Close the view of a review that was removed from the table, and keep the text typed into it."""
        text = None
        try:
            text = await self.views.put_away(closed.id) if was_shown else None
        finally:
            text = self.texts.forget(closed.id) if text is None else text
            if text is not None:
                closed = replace(closed, state=Closed(text))
                await self.texts.keep(closed, text)
        self.remember(closed)
        return closed

    def remember(self, review: DiffReview, by: str = "") -> None:
        """Remember an ended review, for answers that come late; ``by`` is the place where the user decided."""
        self.listed_states.pop(review.id, None)
        self.ended.add(review)
        self.outcomes.note_review(review, by)

    async def is_decided_soon(self, review: DiffReview) -> bool:
        """Wait for the editor's event after the view disappeared; return whether it came in time."""
        return await self.changes.wait_for(lambda: self.reviews.get(review.id) is None, self._limits.decision_seconds)

    def _tell_answerer(self, review: DiffReview, by: str) -> None:
        """Tell the user where the client's question was answered, as the client says; nothing if it does not say.

        If the user has decided here, too late, the client does not use the text, and it is kept as a file.
        """
        if not by:
            return
        late = "" if isinstance(review.state, Closed) else "too late here, "
        self.notices.tell_end(review, f"{late}{review.title} was answered in {by}")
        if isinstance(review.state, Accepted):
            self._tasks.start(self.texts.keep(review, review.state.content))
