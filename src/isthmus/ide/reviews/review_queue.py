"""Queue of proposed edits for the user: shows the reviews of a file one after the other, and accepts one answer each.

The answer may come from the editor or from the user's terminal; the first one wins and is sent only to the client that
asked. Text that the user typed into a review that ends without their decision is kept as a file. Independent of the
protocols. The agent writes the reviewed file, and has a moment to do so before the next review is shown.
"""

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from pathlib import PurePath
from types import MappingProxyType
from uuid import uuid4

from isthmus.ide.agent_client import Client
from isthmus.ide.editor import Editor, EditorError
from isthmus.ide.editor_messages import HasMessages
from isthmus.ide.options import ReviewLimits
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.outcomes import Outcomes
from isthmus.ide.reviews.review import Accepted, Closed, DiffReview, Rejected, ReviewTable
from isthmus.ide.reviews.review_views import ReviewViews
from isthmus.ide.reviews.reviewed_file import text_on_disk
from isthmus.ide.workspace.workspace_files import FileStamp, target_of, wait_until_written

_log = logging.getLogger(__name__)


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
        self.reviews = ReviewTable(changed)
        self._editor = editor
        self._clients = clients
        self._kept_texts = kept
        self._limits = limits
        self._views = ReviewViews(editor, self.reviews)
        self._typed: dict[str, str] = {}
        self.typed_texts: Mapping[str, str] = MappingProxyType(self._typed)
        """Texts in the views of open reviews, by review id, as far as the editor has reported edits."""
        self.listed_states: dict[str, str] = {}
        """Digests of what the user's terminal listed last of open reviews, by review id."""
        self._ended: OrderedDict[str, DiffReview] = OrderedDict()
        self.outcomes = Outcomes(changed=changed)
        """Ends of the newest reviews, and who ended them."""
        self.accepted: Callable[[str, str], None] = lambda target, text: None
        """Function that is called with the real path and the text of each accepted edit, before the agent has it."""
        self._settling: dict[str, tuple[str, asyncio.Task[object]]] = {}
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[object]] = set()
        self.is_stopped = False
        """Whether the companion has ended, so that no more reviews are opened."""

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
        if client.id not in self._clients:  # it left during its call and could not close the view
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
            self._remember(former)  # the user's answer may be under way
        client.discard_decisions(file_path)
        try:
            if former is not None:
                try:
                    former = await self._put_away(former, was_shown)
                finally:
                    client.review_closed(former)
            if (settling := self._settling.get(target)) is not None and settling[0] == client.id:
                self._stop_settling(target)  # a client that asks again has written its last edit
            following = self.reviews.next(target)
            if target not in self._settling and following is not None and following.id == review.id:
                await self._show(review)
            else:
                await self._views.until_shown(review.id)  # it became due meanwhile, and is being shown
        except BaseException:
            # Also if the client cancelled its call: a view that appears afterwards is closed.
            self.reviews.close(review.id)
            self._in_background(self._views.put_away(review.id))
            raise
        finally:
            self._in_background(self._advance(target))
        await self._announce()
        return review

    async def close_oldest(self, client: Client, file_path: str, answered_by: str = "") -> DiffReview | None:
        """Close the oldest review of a file, and return it with its final text; None if there was none.

        ``answered_by`` is the surface where the user answered instead, as the client claims; empty if it does not say.
        If the user decides at the same moment, the returned review holds their decision.
        """
        review = self.reviews.find(client.id, file_path)
        if review is None:
            ended = [r for r in self._ended.values() if (r.owner, r.file_path) == (client.id, file_path)]
            # Only the last one: an answer to an earlier proposal does not apply to one withdrawn since.
            if not ended or isinstance(ended[-1].state, Closed):
                return None
            self._tell_answerer(ended[-1], answered_by)
            return ended[-1]
        before = FileStamp.of(review.target)
        closed = await self._withdraw(review, answered_by)
        if closed is not None and isinstance(closed.state, Closed) and closed.state.content != closed.proposed:
            self._in_background(self._keep_unless_written(closed, closed.state.content, before))
        return closed

    async def close(self, review_id: str, answered_by: str = "") -> DiffReview | None:
        """Close a review whose client cannot receive its text; text that the user typed is kept as a file.

        ``answered_by`` is as in :meth:`close_oldest`. Return the ended review, also if it ended earlier; None if the
        review is unknown or forgotten.
        """
        review = self.reviews.get(review_id)
        closed = await self._withdraw(review, answered_by) if review is not None else self._ended.get(review_id)
        if review is not None and closed is not None and isinstance(closed.state, Closed):
            # The protocol has no message that would send the typed text to the client.
            await self._keep(closed, closed.state.content)
        return closed

    def decided_too_late(self, owner: str, tab_name: str, answered_by: str) -> None:
        """Tell the user who answered before the decision about the last review of a client with this tab name."""
        decided = [review for review in self._ended.values() if (review.owner, review.tab_name) == (owner, tab_name)]
        if decided:
            self._tell_answerer(decided[-1], answered_by)

    async def close_all(self, owner: str) -> int:
        """Close all reviews of a client without a decision, and return their number. Typed text is kept as files.

        An attached client is notified of each by :meth:`Client.review_closed`.
        """
        reviews = self.reviews.all(owner)
        ended = [await self._end(review) for review in reviews]
        for target in dict.fromkeys(review.target for review in reviews):
            self._in_background(self._advance(target))
        await self._announce()
        return sum(review is not None for review in ended)

    # Answers of the user.

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
        was_shown = self.reviews.is_shown(review_id)
        text = await self._take_for_answer(review_id)
        if text is None:
            return None
        review = self.reviews.get(review_id)
        chosen = text if content is None else content
        if review is not None and was_shown and not has_seen_file and await self._views.is_outdated(review, chosen):
            await self._show_changed(review, text, _changed_text(review))
            raise EditorError(_changed_text(review))
        if review is not None and was_shown and seen_text not in (None, text):
            await self._show_changed(review, text, _edited_text(review))
            raise EditorError(_edited_text(review))
        decided = await self._decide(self.reviews.accept(review_id, chosen), by)
        if decided is not None and isinstance(decided.state, Accepted) and was_shown and by:
            self._tell_end(decided, f"accepted by {by}")
        return decided

    async def reject(self, review_id: str, *, by: str = "", reason: str = "") -> DiffReview | None:
        """Reject on behalf of the user; return None if already decided. ``by`` is as in :meth:`accept`.

        ``reason`` has the user's words to an agent that :meth:`takes_reasons`.

        Raises:
            EditorError: the editor does not answer; the review stays open.
        """
        was_shown = self.reviews.is_shown(review_id)
        text = await self._take_for_answer(review_id)
        if text is None:
            return None
        decided = await self._decide(self.reviews.reject(review_id, reason), by)
        if decided is not None:
            if was_shown and by:
                self._tell_end(decided, f"rejected by {by}")
            await self._keep(decided, text)
        return decided

    async def accepted_in_editor(self, review_id: str, content: str) -> None:
        """Handle the editor's event that the user accepted a review."""
        review = self.reviews.get(review_id)
        if review is not None and await self._views.is_outdated(review, content):
            await self._show_changed(review, content, _changed_text(review))
            return
        if await self._decide(self.reviews.accept(review_id, content), self._editor_name) is None:
            ended = self._ended.get(review_id)
            # Its client left or asked again at the same moment. If it was accepted elsewhere, the client has the text.
            if ended is not None and ended.state != Closed(content) and not isinstance(ended.state, Accepted):
                self._typed.pop(review_id, None)
                await self._keep(ended, content)

    async def _show_changed(self, review: DiffReview, text: str, message: str) -> None:
        """Show a review anew that has changed while it was open; nothing is decided, and the user is told."""
        if text != review.proposed:
            self._typed[review.id] = text
        self.notify_user(message)
        try:
            await self._views.show_again(review, text)
        except EditorError as error:
            _log.warning("the review of %s could not be shown again: %s", review.file_path, error)
            await self.close(review.id)

    async def rejected_in_editor(self, review_id: str, content: str | None) -> None:
        """Handle the editor's event that the user rejected; ``content`` is the text in the view, if reported."""
        content = self._typed.get(review_id) if content is None else content
        decided = await self._decide(self.reviews.reject(review_id), self._editor_name)
        if decided is not None and content is not None:
            await self._keep(decided, content)

    def shown_text(self, review: DiffReview) -> str:
        """Return the text in the view of an open review, as far as the editor has reported edits."""
        return self._typed.get(review.id, review.proposed)

    def typed(self, review_id: str, content: str) -> None:
        """Record the text in a view, as reported by the editor; it is the only copy if the editor crashes."""
        if self.reviews.get(review_id) is not None:
            self._typed[review_id] = content

    async def wait(self, timeout: float) -> tuple[DiffReview, ...]:
        """Wait at most ``timeout`` seconds for an open review; return the open reviews."""
        async with self._changed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._changed.wait_for(lambda: len(self.reviews) > 0)
        return self.reviews.all()

    def is_client_connected(self, review: DiffReview) -> bool:
        """Return whether a decision would reach the client of a review now."""
        owner = self._clients.get(review.owner)
        return owner is not None and owner.connected

    def takes_reasons(self, review: DiffReview) -> bool:
        """Return whether the user's words about a rejection would reach the agent of a review."""
        owner = self._clients.get(review.owner)
        return owner is not None and owner.takes_reasons

    def is_visible(self, review: DiffReview) -> bool:
        """Return whether the user can see a review; otherwise it is queued or has ended."""
        return self._views.has(review)

    async def stop(self) -> None:
        """End all reviews: close the views, notify the clients, and keep typed text. No more reviews are accepted."""
        self.is_stopped = True
        for target in tuple(self._settling):
            self._stop_settling(target)
        ending = [asyncio.create_task(self._end(review)) for review in self.reviews.all()]
        if ending:
            await asyncio.wait(ending, timeout=self._limits.shutdown_seconds)
            for task in ending:  # if the editor hangs, the last text that it reported is kept
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
        await self._announce()
        tasks = tuple(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=self._limits.shutdown_seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Showing.

    async def _show(self, review: DiffReview) -> None:
        await self._views.show(review)
        if self.reviews.get(review.id) is None:
            self._in_background(self._views.put_away(review.id))  # it ended meanwhile

    async def _advance(self, target: str) -> None:
        """Show the next review of a file when it is due; close a review that cannot be shown, and try the next."""
        while target not in self._settling and not self.is_stopped:
            review = self.reviews.next(target)
            if review is None:
                return
            try:
                await self._show(review)
            except EditorError as error:
                closed = self.reviews.close(review.id)
                self._in_background(self._views.put_away(review.id))
                if closed is not None:
                    self._notify_closed(replace(closed, state=Closed(closed.proposed, str(error))))
                    self.notify_user(f"the review of {review.file_path} could not be shown: {error}")
            await self._announce()

    def _settle(self, review: DiffReview, before: FileStamp | None) -> None:
        """Give the client of an ended review a moment to write the file, before other reviews of it are shown."""
        if self.is_client_connected(review) and len(self._clients) > 1 and not self.is_stopped:
            self._stop_settling(review.target)
            task = self._in_background(self._until_written(review.target, before))
            self._settling[review.target] = (review.owner, task)
        else:
            self._in_background(self._advance(review.target))

    async def _until_written(self, target: str, before: FileStamp | None) -> None:
        await wait_until_written(target, before, self._limits.settle_seconds)
        del self._settling[target]
        await self._advance(target)

    def _stop_settling(self, target: str) -> None:
        if (settling := self._settling.pop(target, None)) is not None:
            settling[1].cancel()

    def _find_orphan(self, client: Client, file_path: str, proposed: str) -> DiffReview | None:
        """Return a review of the same proposal by the same kind of agent, if its agent is no longer connected."""
        if self.reviews.find(client.id, file_path) is not None:
            return None
        for review in self.reviews.all():
            is_same = (review.file_path, review.proposed, review.title) == (file_path, proposed, client.title)
            if is_same and not self.is_client_connected(review):
                return review
        return None

    # Ending.

    async def _take_for_answer(self, review_id: str) -> str | None:
        """Close the view for an answer from outside the editor; return its text, or None if already decided.

        Raises:
            EditorError: the editor does not answer; the review is unchanged.
        """
        review = self.reviews.get(review_id)
        if review is None:
            return None
        if not self.reviews.is_shown(review_id):
            return review.proposed
        text = await self._views.close(review_id)
        if text is None and await self._is_decided_soon(review):
            return None  # answered in the editor a moment ago
        return self.shown_text(review) if text is None else text

    async def _withdraw(self, review: DiffReview, answered_by: str) -> DiffReview | None:
        """Close a review at its client's request; if the user answers at the same moment, return the decided review."""
        content = self._typed.get(review.id)
        before = FileStamp.of(review.target)
        was_shown = self.reviews.is_shown(review.id)
        if was_shown:
            shown = await self._views.put_away(review.id)
            if shown is None and await self._is_decided_soon(review):
                if (ended := self._ended.get(review.id)) is not None:
                    self._tell_answerer(ended, answered_by)
                return ended
            content = content if shown is None else shown
        closed = self.reviews.close(review.id, content)
        if closed is None:
            return self._ended.get(review.id)
        self._typed.pop(review.id, None)
        self._remember(closed)
        if was_shown:
            self._tell_answerer(closed, answered_by)
        self._settle(closed, before)  # it was answered in the client's own terminal
        await self._announce()
        return closed

    async def _end(self, review: DiffReview) -> DiffReview | None:
        """Close a review without an answer, and notify its client if attached; return None if it has already ended."""
        was_shown = self.reviews.is_shown(review.id)
        closed = self.reviews.close(review.id)  # first, so that later answers do not count
        if closed is None:
            return None
        if self.is_stopped:
            self.reviews.unanswered.append(closed)
        self._remember(closed)
        self._notify_closed(closed)
        return await self._put_away(closed, was_shown)

    async def _put_away(self, closed: DiffReview, was_shown: bool) -> DiffReview:
        """Close the view of a review that was removed from the table, and keep the text typed into it."""
        text = None
        try:
            text = await self._views.put_away(closed.id) if was_shown else None
        finally:
            text = self._typed.pop(closed.id, None) if text is None else text
            if text is not None:
                closed = replace(closed, state=Closed(text))
                await self._keep(closed, text)
        self._remember(closed)
        return closed

    @property
    def _editor_name(self) -> str:
        return self._editor.identity.display_name

    async def _decide(self, review: DiffReview | None, by: str) -> DiffReview | None:
        if review is None:
            return None
        before = FileStamp.of(review.target)
        self._typed.pop(review.id, None)
        client = self._clients.get(review.owner)
        if isinstance(review.state, Accepted):
            self.accepted(review.target, review.state.content)
        warning = client.decided(review) if client is not None else None
        if warning is not None:
            review = replace(review, state=Rejected(warning))
        self._remember(review, by)
        if isinstance(review.state, Accepted):
            self._settle(review, before)
            if not self.is_client_connected(review):  # its client may never reconnect
                await self._keep(review, review.state.content)
        else:
            self._in_background(self._advance(review.target))
        await self._announce()
        if warning is not None:
            self.notify_user(warning)
        return review

    def _remember(self, review: DiffReview, by: str = "") -> None:
        self.listed_states.pop(review.id, None)
        self._ended[review.id] = review
        self.outcomes.note_review(review, by)
        size = sum(len(ended.proposed) for ended in self._ended.values())
        limits = self._limits
        while len(self._ended) > 1 and (len(self._ended) > limits.kept_decisions or size > limits.kept_characters):
            _, forgotten = self._ended.popitem(last=False)
            size -= len(forgotten.proposed)

    async def _keep(self, review: DiffReview, text: str) -> None:
        """Keep a text that differs from the proposal, and show the user its path."""
        if text == review.proposed:
            return
        try:
            kept = await asyncio.to_thread(self._kept_texts.keep, review, text)
        except OSError as error:
            message = f"what you typed into the review of {review.file_path} is lost, it could not be kept: {error}"
        else:
            message = str(kept)
        _log.warning("%s", message)
        self.notify_user(message)

    async def _keep_unless_written(self, review: DiffReview, text: str, before: FileStamp | None) -> None:
        """Keep a text that was sent to the client, unless the client writes it: clients may refuse their own edit."""
        await wait_until_written(review.target, before, self._limits.settle_seconds)
        if await asyncio.to_thread(text_on_disk, review.target) != text:
            await self._keep(review, text)

    def _notify_closed(self, review: DiffReview) -> None:
        if (client := self._clients.get(review.owner)) is not None:
            client.review_closed(review)

    async def _is_decided_soon(self, review: DiffReview) -> bool:
        """Wait for the editor's event after the view disappeared; return whether it came in time."""
        async with self._changed:
            try:
                async with asyncio.timeout(self._limits.decision_seconds):
                    await self._changed.wait_for(lambda: self.reviews.get(review.id) is None)
            except TimeoutError:
                return False
        return True

    def _tell_answerer(self, review: DiffReview, by: str) -> None:
        """Tell the user where the client's question was answered, as the client says; nothing if it does not say.

        If the user has decided here, too late, the client does not use the text, and it is kept as a file.
        """
        if not by:
            return
        late = "" if isinstance(review.state, Closed) else "too late here, "
        self._tell_end(review, f"{late}{review.title} was answered in {by}")
        if isinstance(review.state, Accepted):
            self._in_background(self._keep(review, review.state.content))

    def _tell_end(self, review: DiffReview, how: str) -> None:
        """Tell the user of an editor how a review ended that disappeared there."""
        if not isinstance(self._editor, HasMessages):  # these have no view that disappears
            self.notify_user(f"{PurePath(review.file_path).name}: {how}")

    def notify_user(self, text: str) -> None:
        """Show the user a message in the editor without waiting, because the editor may hang."""
        self._in_background(self._show_message(text))

    async def _show_message(self, text: str) -> None:
        with contextlib.suppress(EditorError):
            await self._editor.show_message(text)

    def _in_background(self, work: Coroutine[None, None, object]) -> asyncio.Task[object]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _announce(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _changed_text(review: DiffReview) -> str:
    name = PurePath(review.file_path).name
    return f"{name} has changed on disk while its review was open: nothing is decided; look at it once more"


def _edited_text(review: DiffReview) -> str:
    name = PurePath(review.file_path).name
    return f"the proposal for {name} was edited after its hunks were listed: nothing is decided; list them once more"
