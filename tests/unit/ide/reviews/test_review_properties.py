"""Several clients at one companion, in any order of events: one answer for each review, and no typed text is lost."""

import asyncio
import tempfile
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.companion import Companion
from isthmus.ide.options import CompanionLimits, ReviewLimits
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.review import Accepted, Closed, DiffReview
from support.companion_recorder import Recorder

T = TypeVar("T")

_FILES = ("a", "b", "link-to-a")
_WAYS = ("accept", "accept other", "reject", "close by path", "close by id", "editor accept", "editor reject", "leave")
"""The ways in which a review can end."""


class InlineExecutor(ThreadPoolExecutor):
    """An executor that runs work where it is submitted, so that a replayed example has the same order of events."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except BaseException as error:
            done.set_exception(error)
        return done


class Reviews(RuleBasedStateMachine):
    """A real companion with the headless editor; the clients record their events."""

    reviews = Bundle("reviews")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(InlineExecutor())
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name).resolve()
        for name in ("a", "b"):
            (self.root / name).write_text("old\n", encoding="utf-8")
        (self.root / "link-to-a").symlink_to(self.root / "a")
        self.editor = HeadlessEditor((str(self.root),))
        kept = KeptTexts(self.root / "kept", maximum_files=10_000)
        # No client here ever writes: the companion need not wait for it.
        limits = CompanionLimits(reviews=ReviewLimits(settle_seconds=0))
        self.companion = Companion(self.editor, kept=kept, limits=limits)
        self.running = self.loop.create_task(self.companion.run())
        self.clients: list[Recorder] = []
        self.here: dict[str, Recorder] = {}
        self.count = 0
        self.typed: dict[str, str] = {}
        """Typed texts in views that must not be lost, by review."""
        self.finals: set[str] = set()
        """Final texts that clients got."""
        for name in "xyz":
            self._attach(name)

    def _do(self, work: Coroutine[None, None, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    def _attach(self, name: str) -> None:
        self.count += 1
        client = Recorder(f"{name}{self.count}", name)
        self.clients.append(client)
        self.here[name] = client
        self.companion.attach(client)

    def _new_text(self) -> str:
        self.count += 1
        return f"text {self.count}\n"

    @rule(target=reviews, name=st.sampled_from("xyz"), file=st.sampled_from(_FILES), tab=st.sampled_from(["", "t"]))
    def open(self, name: str, file: str, tab: str) -> DiffReview:
        client = self.here[name]
        work = self.companion.open_diff(client, str(self.root / file), self._new_text(), tab_name=tab)
        return self._do(work)

    @rule(review=reviews)
    def type_into(self, review: DiffReview) -> None:
        if any(shown.id == review.id for shown in self.editor.open_reviews):
            self.typed[review.id] = self._new_text()
            self.editor.edit_diff(review.id, self.typed[review.id])

    @rule(review=reviews, way=st.sampled_from(_WAYS))
    def end(self, review: DiffReview, way: str) -> None:
        self._do(self._end(review, way))

    @rule(review=reviews, first=st.sampled_from(_WAYS), second=st.sampled_from(_WAYS))
    def end_in_two_ways_at_once(self, review: DiffReview, first: str, second: str) -> None:
        async def both() -> None:
            await asyncio.gather(self._end(review, first), self._end(review, second))

        self._do(both())

    async def _end(self, review: DiffReview, way: str) -> None:
        companion, editor = self.companion, self.editor
        is_shown = any(shown.id == review.id for shown in editor.open_reviews)
        owner = next(client for client in self.clients if client.id == review.owner)
        match way:
            case "accept":
                self._note(await companion.answers.accept(review.id))
            case "accept other":
                if await companion.answers.accept(review.id, "another text\n") is not None:
                    self.typed.pop(review.id, None)  # the user chose another text
            case "reject":
                if await companion.answers.reject(review.id) is not None:
                    self.typed.pop(review.id, None)
            case "close by path":
                if owner in self.here.values():
                    self._note(await companion.queue.close_oldest(owner, review.file_path))
            case "close by id":
                await companion.queue.close(review.id)
            case "editor accept":
                if is_shown:
                    editor.accept_diff(review.id)
            case "editor reject":
                if is_shown:
                    editor.reject_diff(review.id)
                    self.typed.pop(review.id, None)
            case _:
                if owner in self.here.values():
                    name = owner.title
                    await companion.detach(owner.id)
                    self._attach(name)

    def _note(self, ended: DiffReview | None) -> None:
        if ended is not None and isinstance(ended.state, (Accepted, Closed)):
            self.finals.add(ended.state.content)

    @rule(name=st.sampled_from("xyz"))
    def close_all(self, name: str) -> None:
        own = len(self.companion.reviews.all(self.here[name].id))
        assert self._do(self.companion.queue.close_all(self.here[name].id)) == own

    @rule(name=st.sampled_from("xyz"), connected=st.booleans())
    def connect(self, name: str, connected: bool) -> None:
        self.here[name].connected = connected

    @rule()
    def let_time_pass(self) -> None:
        self._do(self._turns())

    async def _turns(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    @invariant()
    def each_review_ends_once_and_its_owner_alone_is_told(self) -> None:
        told: list[str] = []
        for client in self.clients:
            for review in (*client.decisions, *client.closed):
                assert review.owner == client.id
                assert not review.is_open
                told.append(review.id)
        assert len(told) == len(set(told))
        assert not set(told) & {review.id for review in self.companion.reviews.all()}

    @invariant()
    def at_most_one_review_of_a_file_is_shown(self) -> None:
        targets = [review.target for review in self.editor.open_reviews]
        assert len(targets) == len(set(targets))

    @precondition(lambda self: self.editor.open_reviews == ())
    @rule()
    def a_file_without_a_view_has_no_review_that_waits(self) -> None:
        self._do(self._turns())
        # Decisions of the editor may have been under way: then other reviews were shown, and are not answered yet.
        waiting = {review.target for review in self.companion.reviews.all()}
        assert waiting == {review.target for review in self.editor.open_reviews}

    def teardown(self) -> None:
        try:
            self._do(self._turns())
            self.editor.quit()
            self._do(_finished(self.running))
            assert len(self.companion.reviews) == 0
            self.each_review_ends_once_and_its_owner_alone_is_told()
            kept = {path.read_text(encoding="utf-8") for path in map(Path, KeptTexts(self.root / "kept").paths())}
            accepted = {
                review.state.content
                for client in self.clients
                for review in client.heard
                if isinstance(review.state, Accepted)
            }
            assert set(self.typed.values()) <= kept | accepted | self.finals
        finally:
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            self.folder.cleanup()


async def _finished(task: "asyncio.Task[None]") -> None:
    await task


TestReviews = pytest.mark.slow(Reviews.TestCase)
TestReviews.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
