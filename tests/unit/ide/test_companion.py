"""The companion between an editor and its clients, where answers cross."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.companion import Companion
from isthmus.ide.context_tracker import EditorContext
from isthmus.ide.editor import EditorError, FileMentioned
from isthmus.ide.person import COMMANDS
from isthmus.ide.review import Accepted, Closed, DiffReview, Rejected
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@dataclass
class Recorder:
    """A client that keeps what it is told."""

    id: str = "one"
    title: str = "A client"
    connected: bool = True
    warning: str | None = None
    contexts: list[EditorContext] = field(default_factory=list[EditorContext])
    mentions: list[FileMentioned] = field(default_factory=list[FileMentioned])
    closed: list[DiffReview] = field(default_factory=list[DiffReview])
    decisions: list[DiffReview] = field(default_factory=list[DiffReview])

    def mentioned(self, mention: FileMentioned) -> None:
        self.mentions.append(mention)

    def review_closed(self, review: DiffReview) -> None:
        self.closed.append(review)

    def context_changed(self, context: EditorContext) -> None:
        self.contexts.append(context)

    def asked_again(self, file_path: str) -> None:
        self.decisions = [review for review in self.decisions if review.file_path != file_path]

    def decided(self, review: DiffReview) -> str | None:
        self.decisions.append(review)
        return self.warning


@pytest.fixture
def editor(workspace: Path) -> HeadlessEditor:
    return HeadlessEditor((str(workspace),))


@pytest.fixture
async def companion(editor: HeadlessEditor) -> AsyncGenerator[Companion]:
    companion = Companion(editor)
    running = asyncio.create_task(companion.run())
    yield companion
    editor.quit()
    await asyncio.wait_for(running, 30)


@pytest.fixture
def client(companion: Companion) -> Recorder:
    client = Recorder()
    companion.attach(client)
    return client


async def test_the_answer_in_the_editor_wins_over_a_close_that_crosses_it(
    companion: Companion, editor: HeadlessEditor, client: Recorder
) -> None:
    review = await companion.open_diff(client, "/a", "new")
    editor.edit_diff(review.id, "mine")
    editor.accept_diff(review.id)  # told, but not handled yet
    closed = await companion.close_diff(client, "/a")
    assert closed is not None
    assert closed.state == Accepted("mine")
    assert [decided.state for decided in client.decisions] == [Accepted("mine")]


async def test_a_close_wins_over_an_answer_that_comes_after_it(
    companion: Companion, editor: HeadlessEditor, client: Recorder
) -> None:
    review = await companion.open_diff(client, "/a", "new")
    editor.edit_diff(review.id, "mine")
    closed = await companion.close_diff(client, "/a")
    assert closed is not None
    assert closed.state == Closed("mine")
    assert await companion.accept(review.id) is None
    assert await companion.reject(review.id) is None
    assert client.decisions == []


async def test_the_editor_wins_over_the_terminal_when_it_was_first(
    companion: Companion, editor: HeadlessEditor, client: Recorder
) -> None:
    review = await companion.open_diff(client, "/a", "new")
    editor.reject_diff(review.id)
    assert await companion.accept(review.id, "other") is None
    await eventually_async(lambda: client.decisions, what="a decision")
    assert [decided.state for decided in client.decisions] == [Rejected()]


async def test_the_terminal_accepts_what_is_in_the_view_or_another_text(
    companion: Companion, editor: HeadlessEditor, client: Recorder
) -> None:
    for content, expected in ((None, "mine"), ("other", "other"), ("", "")):
        review = await companion.open_diff(client, "/a", "new")
        editor.edit_diff(review.id, "mine")
        decided = await companion.accept(review.id, content)
        assert decided is not None
        assert decided.state == Accepted(expected)
        assert client.decisions[-1] is decided
    assert editor.open_reviews == ()


async def test_a_client_that_leaves_takes_its_views_along_and_no_others(
    companion: Companion, editor: HeadlessEditor, client: Recorder
) -> None:
    other = Recorder("two")
    companion.attach(other)
    await companion.open_diff(client, "/a", "new")
    kept = await companion.open_diff(other, "/a", "newer")
    await companion.detach(client.id)
    await eventually_async(lambda: editor.open_reviews == (kept,), what="the next review")
    editor.accept_diff(kept.id)
    await eventually_async(lambda: other.decisions, what="a decision")
    assert client.decisions == []


async def test_an_agent_that_was_started_anew_gets_the_view_that_is_open_with_the_persons_edits(
    companion: Companion, editor: HeadlessEditor, client: Recorder, workspace: Path
) -> None:
    path = str(workspace / "a.py")
    first = await companion.open_diff(client, path, "proposed\n")
    editor.edit_diff(first.id, "edited\n")
    again = Recorder("two")
    companion.attach(again)
    client.connected = False
    second = await companion.open_diff(again, path, "proposed\n")
    assert (second.id, second.owner) == (first.id, "two")
    await companion.detach(client.id)
    editor.accept_diff(second.id)
    await eventually_async(lambda: again.decisions)
    assert again.decisions[0].state == Accepted("edited\n")
    assert client.decisions == []


@pytest.mark.parametrize(
    ("connected", "title", "proposed"),
    [(True, "A client", "proposed\n"), (False, "Another", "proposed\n"), (False, "A client", "something else\n")],
)
async def test_a_view_is_left_to_an_agent_that_is_there_or_may_come_back(
    companion: Companion, editor: HeadlessEditor, client: Recorder, workspace: Path,
    connected: bool, title: str, proposed: str,
) -> None:  # fmt: skip
    path = str(workspace / "a.py")
    await companion.open_diff(client, path, "proposed\n")
    client.connected = connected
    other = Recorder("two", title)
    companion.attach(other)
    await companion.open_diff(other, path, proposed)
    assert [review.owner for review in companion.reviews.all()] == ["one", "two"]
    assert [review.owner for review in editor.open_reviews] == ["one"]


async def test_the_person_answers_the_agent_that_waits_before_one_that_is_gone(
    companion: Companion, client: Recorder, workspace: Path
) -> None:
    path = str(workspace / "a.py")
    await companion.open_diff(client, path, "of the first\n")
    other = Recorder("two")
    companion.attach(other)
    await companion.open_diff(other, path, "of the second\n")
    client.connected = False
    answer = await COMMANDS["accept"](companion, {"path": path})
    assert answer["agent_connected"] is True
    assert [review.owner for review in companion.reviews.all()] == ["one"]
    assert other.decisions[0].state == Accepted("of the second\n")
    answer = await COMMANDS["accept"](companion, {"path": path})
    assert answer["agent_connected"] is False
    assert client.decisions[0].state == Accepted("of the first\n")


async def test_a_view_that_cannot_be_shown_leaves_no_review(
    companion: Companion, editor: HeadlessEditor, client: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(review: DiffReview) -> None:
        raise EditorError("no window")

    monkeypatch.setattr(editor, "open_diff", refuse)
    with pytest.raises(EditorError, match="no window"):
        await companion.open_diff(client, "/a", "new")
    assert companion.reviews.all() == ()
    assert await companion.close_diff(client, "/a") is None


async def test_there_is_a_limit_of_open_reviews_and_it_is_said(companion: Companion, client: Recorder) -> None:
    for number in range(100):
        await companion.open_diff(client, f"/{number}", "new")
    with pytest.raises(EditorError, match="100"):
        await companion.open_diff(client, "/more", "new")
    await companion.close_diff(client, "/0")
    await companion.open_diff(client, "/more", "new")


async def test_what_a_decision_means_to_its_client_is_shown_to_the_person(
    companion: Companion, editor: HeadlessEditor, client: Recorder
) -> None:
    client.warning = "sent as rejected"
    review = await companion.open_diff(client, "/a", "new")
    editor.accept_diff(review.id)
    await eventually_async(lambda: editor.messages == ("sent as rejected",), what="a message")


async def test_waiting_for_reviews_ends_with_the_first_one_or_at_the_deadline(
    companion: Companion, client: Recorder
) -> None:
    assert await companion.wait_for_reviews(0.01) == ()
    waiting = asyncio.create_task(companion.wait_for_reviews(10))
    review = await companion.open_diff(client, "/a", "new")
    assert await asyncio.wait_for(waiting, 30) == (review,)
    assert await companion.wait_for_reviews(0) == (review,)


async def test_changes_are_sent_to_all_clients_and_only_news(
    companion: Companion, editor: HeadlessEditor, client: Recorder, workspace: Path
) -> None:
    file = workspace / "a.py"
    file.touch()
    await editor.open_file(str(file))
    await eventually_async(lambda: len(client.contexts) == 1, what="a context")
    late = Recorder("late")
    companion.attach(late)
    active = (await companion.context()).active_file
    assert active is not None
    assert active.path == str(file)
    await editor.close_file(str(file))
    await eventually_async(lambda: len(client.contexts) == 2 and len(late.contexts) == 1, what="a second context")
