"""The companion: one editor, the clients that are attached to it, the reviews that wait for the person.

Knows no protocol and no transport: a wire attaches a :class:`Client` and calls :meth:`Companion.open_diff` and
:meth:`Companion.close_diff`. It never writes a file that is reviewed; the agent does. One review can be decided from
the editor or from the person's terminal; the first answer wins and goes only to the client that asked.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Protocol, assert_never
from uuid import uuid4

from isthmus.files import require_regular
from isthmus.ide.asking import Asking
from isthmus.ide.context_tracker import ContextTracker, EditorContext
from isthmus.ide.editor import (
    ContextChanged,
    DiagnosticsChanged,
    DiffAccepted,
    DiffRejected,
    Editor,
    EditorError,
    EditorEvent,
    EditorGoneError,
    FileMentioned,
    WorkspaceChanged,
)
from isthmus.ide.review import DiffReview, ReviewTable

MAXIMUM_REVIEWS = 100
KEPT_DECISIONS = 50
KEPT_CHARACTERS = 16 * 1024 * 1024
"""Of decided reviews, which are only kept for a closeDiff that crosses the decision."""
DECISION_WAIT_SECONDS = 1.0


class Client(Protocol):
    """An attached agent CLI, as the companion sees it. Methods return at once; the wire behind them buffers."""

    @property
    def id(self) -> str:
        """Unique among the attached clients."""
        ...

    @property
    def title(self) -> str:
        """What to call it to the person."""
        ...

    @property
    def connected(self) -> bool:
        """Whether it would hear of a decision right now; one that lost its connection may come back."""
        ...

    def context_changed(self, context: EditorContext) -> None:
        """The person looks at something else now."""
        ...

    def mentioned(self, mention: FileMentioned) -> None:
        """The person wants the agent to look at a file."""
        ...

    def review_closed(self, review: DiffReview) -> None:
        """A review of this client ended without the person's decision, and not by :meth:`Companion.close_diff`.

        It was replaced by a newer one of the same client, or the editor or the companion ends.
        """
        ...

    def asked_again(self, file_path: str) -> None:
        """It opens a review of this file: decisions of older ones that it may not have heard are out of date."""
        ...

    def decided(self, review: DiffReview) -> str | None:
        """The person accepted or rejected a review of this client; the text, if any, is shown to them."""
        ...


class Companion:
    """Joins an editor and its clients. :meth:`run` does the work; the rest may be called while it runs."""

    def __init__(
        self,
        editor: Editor,
        *,
        folders: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
        workspace_changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.editor = editor
        self.reviews = ReviewTable()
        self.asking = Asking(editor, clock)
        self._folders = folders
        self._clock = clock
        self._workspace_changed = workspace_changed
        self._clients: dict[str, Client] = {}
        self._tracker = ContextTracker()
        self._dirty = asyncio.Event()
        self._reviews_changed = asyncio.Condition()
        self._decisions: OrderedDict[str, DiffReview] = OrderedDict()
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def clients(self) -> tuple[Client, ...]:
        """Who is attached."""
        return tuple(self._clients.values())

    async def workspace_folders(self) -> tuple[str, ...]:
        """The folders that were given, else the editor's."""
        return self._folders or await self.editor.workspace_folders()

    async def run(self) -> None:
        """Follow the editor until it quits. Events that it still told before are delivered before this returns."""
        sender = asyncio.create_task(self._send_contexts())
        try:
            async for event in self.editor.changes():
                await self._handle(event)
        finally:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    def attach(self, client: Client) -> None:
        """Let a client have contexts and open reviews."""
        self._clients[client.id] = client

    async def detach(self, client_id: str) -> None:
        """Forget a client and close its views; nobody is told a decision."""
        self._clients.pop(client_id, None)
        await self.close_reviews(client_id)

    async def close_reviews(self, client_id: str) -> None:
        """Close the views of a client that is gone; nobody is told a decision."""
        for review in self.reviews.all(client_id):
            self.reviews.close(review.id)
            await self._close_view(review.id)
        await self._announce()

    async def context(self) -> EditorContext:
        """What the person looks at right now."""
        await self._refresh()
        return self._tracker.latest

    async def open_diff(self, client: Client, file_path: str, proposed: str) -> DiffReview:
        """Show a proposed edit to the person; returns when it can be seen. A former one of the same client is closed.

        An agent that was started anew asks again as another client: it gets the view that is open, with the person's
        edits in it, instead of a second one beside it.

        Raises:
            EditorError: nothing can be shown.
        """
        _require_file(file_path)
        if (left := self._left_behind(client, file_path, proposed)) is not None:
            return self.reviews.hand_over(left.id, client.id, client.title)
        if len(self.reviews) >= MAXIMUM_REVIEWS:
            raise EditorError(f"openDiff: {MAXIMUM_REVIEWS} reviews are open already; decide or close some first")
        review = DiffReview(uuid4().hex, file_path, proposed, client.id, client.title)
        former = self.reviews.open(review)
        client.asked_again(file_path)
        try:
            if former is not None:
                await self._close_view(former.id)
                client.review_closed(former)
            await self.editor.open_diff(review)
        except BaseException:
            # Also when the client cancelled its call: a view that appears all the same is closed.
            self.reviews.close(review.id)
            self._later(self._close_view(review.id))
            raise
        await self._announce()
        return review

    def _left_behind(self, client: Client, file_path: str, proposed: str) -> DiffReview | None:
        """The same proposal of the same kind of agent, if that one is not connected any more."""
        if self.reviews.find(client.id, file_path) is not None:
            return None
        for review in self.reviews.all():
            is_same = (review.file_path, review.proposed, review.title) == (file_path, proposed, client.title)
            if is_same and not self.is_heard(review):
                return review
        return None

    def is_heard(self, review: DiffReview) -> bool:
        """Whether the client of a review would hear of a decision right now."""
        owner = self._clients.get(review.owner)
        return owner is not None and owner.connected

    async def close_diff(self, client: Client, file_path: str) -> DiffReview | None:
        """Take a review back. The decided review with its final text; None when there was none.

        When the person has answered in the same moment, what is returned is their answer.
        """
        review = self.reviews.find(client.id, file_path)
        if review is None:
            return self._last_decision(client.id, file_path)
        content = await self._close_view(review.id)
        if content is None:
            return await self._decision_on_its_way(review)
        closed = self.reviews.close(review.id, content)
        await self._announce()
        return closed or self._decisions.get(review.id)

    async def accept(self, review_id: str, content: str | None = None) -> DiffReview | None:
        """Accept as the person, with the text in the view or with ``content``; None when it is decided already."""
        if self.reviews.get(review_id) is None:
            return None
        shown = await self._close_view(review_id)
        if shown is None:
            return None  # answered in the editor a moment ago
        return await self._decide(self.reviews.accept(review_id, shown if content is None else content))

    async def reject(self, review_id: str) -> DiffReview | None:
        """Reject as the person; None when it is decided already."""
        if self.reviews.get(review_id) is None:
            return None
        if await self._close_view(review_id) is None:
            return None
        return await self._decide(self.reviews.reject(review_id))

    async def confirm(self, client_title: str, title: str, text: str) -> bool:
        """Whether the person allows what a client wants; asked in the editor and in their terminals, first answer wins.

        ``title`` is one line, ``text`` what it is about. No answer within 10 minutes is a no; cancelling takes the
        question back.

        Raises:
            TooManyQuestionsError: too many questions wait already.
        """
        return await self.asking.ask(client_title, title, text)

    async def wait_for_reviews(self, timeout: float) -> tuple[DiffReview, ...]:
        """The open reviews as soon as there is one, or after ``timeout`` seconds."""
        async with self._reviews_changed:
            try:
                async with asyncio.timeout(timeout):
                    await self._reviews_changed.wait_for(lambda: len(self.reviews) > 0)
            except TimeoutError:
                pass
        return self.reviews.all()

    async def _handle(self, event: EditorEvent) -> None:
        match event:
            case ContextChanged():
                self._note_change()
            case WorkspaceChanged():
                self._workspace_changed()
                self._note_change()
            case DiffAccepted(review_id, content):
                await self._decide(self.reviews.accept(review_id, content))
            case DiffRejected(review_id):
                await self._decide(self.reviews.reject(review_id))
            case FileMentioned():
                for client in self.clients:
                    client.mentioned(event)
            case DiagnosticsChanged():
                pass  # no protocol has a message for it that a real client heeds
            case _:
                assert_never(event)

    def _note_change(self) -> None:
        self._tracker.changed(self._clock())
        self._dirty.set()

    async def _send_contexts(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            while (due := self._tracker.due) is not None:
                wait = due - self._clock()
                if wait > 0:
                    await asyncio.sleep(wait)
                    continue
                await self._refresh()

    async def _refresh(self) -> None:
        """Take the editor's snapshot and tell all clients when it is news."""
        self._tracker.reading()
        try:
            files = await self.editor.open_files()
        except EditorGoneError:
            files = ()
        except EditorError:
            return  # a busy editor: what was known last stays true until the next change
        context = self._tracker.update(files, self.editor.is_trusted)
        if context is not None:
            for client in self.clients:
                client.context_changed(context)

    async def _close_view(self, review_id: str) -> str | None:
        try:
            return await self.editor.close_diff(review_id)
        except EditorError:
            return None

    async def _decide(self, review: DiffReview | None) -> DiffReview | None:
        if review is None:
            return None
        self._decisions[review.id] = review
        size = sum(len(decided.proposed) for decided in self._decisions.values())
        while len(self._decisions) > 1 and (len(self._decisions) > KEPT_DECISIONS or size > KEPT_CHARACTERS):
            _, forgotten = self._decisions.popitem(last=False)
            size -= len(forgotten.proposed)
        client = self._clients.get(review.owner)
        warning = client.decided(review) if client is not None else None
        await self._announce()
        if warning is not None:
            # Not awaited: an editor that hangs must not hold the decision of the next review.
            self._later(self._show(warning))
        return review

    def _later(self, work: Coroutine[None, None, object]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _show(self, text: str) -> None:
        with contextlib.suppress(EditorError):
            await self.editor.show_message(text)

    async def _decision_on_its_way(self, review: DiffReview) -> DiffReview | None:
        """The view is gone, so the person has answered and the editor's event is coming."""
        async with self._reviews_changed:
            try:
                async with asyncio.timeout(DECISION_WAIT_SECONDS):
                    await self._reviews_changed.wait_for(lambda: self.reviews.get(review.id) is None)
            except TimeoutError:
                return self.reviews.close(review.id)
        return self._decisions.get(review.id)

    def _last_decision(self, owner: str, file_path: str) -> DiffReview | None:
        decisions = reversed(self._decisions.values())
        return next((r for r in decisions if r.owner == owner and r.file_path == file_path), None)

    async def _announce(self) -> None:
        async with self._reviews_changed:
            self._reviews_changed.notify_all()


def _require_file(path: str) -> None:
    """Nothing else can be reviewed, in no editor: a file, or one that is to be made."""
    try:
        require_regular(Path(path).stat())
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise EditorError(f"openDiff: {path} cannot be reviewed: {reason}; expected the path of a file") from error
