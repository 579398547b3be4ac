"""Reviews of several agents at one editor: their order, their end, and their kept texts."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path
from typing import TypeVar

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.companion import Companion
from isthmus.ide.control.commands import COMMANDS, ControlCommandError
from isthmus.ide.editor import EditorError
from isthmus.ide.options import CompanionLimits, ReviewLimits
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.review import Accepted, Closed, DiffReview, Rejected
from support.companion_recorder import Recorder
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

T = TypeVar("T")


@pytest.fixture
def editor(workspace: Path) -> HeadlessEditor:
    return HeadlessEditor((str(workspace),))


@pytest.fixture
def limits() -> CompanionLimits:
    return CompanionLimits()


patient = pytest.mark.parametrize(
    "limits", [CompanionLimits(reviews=ReviewLimits(settle_seconds=600))], ids=["patient"]
)
"""An agent whose edit was accepted has unlimited time to write it."""


@pytest.fixture
async def companion(editor: HeadlessEditor, tmp_path: Path, limits: CompanionLimits) -> AsyncGenerator[Companion]:
    companion = Companion(editor, kept=KeptTexts(tmp_path / "kept"), limits=limits)
    running = asyncio.create_task(companion.run())
    yield companion
    editor.quit()
    await asyncio.wait_for(running, 30)


@pytest.fixture
def one(companion: Companion) -> Recorder:
    one = Recorder("one", "First agent")
    companion.attach(one)
    return one


@pytest.fixture
def two(companion: Companion) -> Recorder:
    two = Recorder("two", "Second agent")
    companion.attach(two)
    return two


@pytest.fixture
def path(workspace: Path) -> str:
    path = workspace / "a.py"
    path.write_text("old\n", encoding="utf-8")
    return str(path)


async def _is_shown(editor: HeadlessEditor, review: DiffReview) -> None:
    await eventually_async(lambda: [shown.id for shown in editor.open_reviews] == [review.id], what="the next review")


def _kept(companion: Companion) -> list[str]:
    return [Path(path).read_text(encoding="utf-8") for path in companion.kept_texts.paths()]


# One after the other.


async def test_reviews_of_one_file_are_shown_in_turn_and_each_agent_hears_its_own(
    companion: Companion, editor: HeadlessEditor, one: Recorder, two: Recorder, path: str
) -> None:
    first = await companion.open_diff(one, path, "first\n")
    second = await companion.open_diff(two, path, "second\n")
    assert [review.id for review in editor.open_reviews] == [first.id]
    assert [companion.reviews.is_shown(review.id) for review in (first, second)] == [True, False]
    editor.reject_diff(first.id)
    await _is_shown(editor, second)
    editor.accept_diff(second.id)
    await eventually_async(lambda: two.decisions, what="a decision")
    assert [review.state for review in one.decisions] == [Rejected()]
    assert [review.state for review in two.decisions] == [Accepted("second\n")]


async def test_reviews_of_several_files_reach_the_editor_in_the_order_asked(
    companion: Companion, editor: HeadlessEditor, one: Recorder, workspace: Path
) -> None:
    large, small = workspace / "large.txt", workspace / "small.txt"
    large.write_bytes(b"0123456789abcde\n" * 2_000_000)  # takes longer to read than the other
    small.write_text("old\n", encoding="utf-8")
    await asyncio.gather(*(companion.open_diff(one, str(path), "new\n") for path in (large, small)))
    assert [review.file_path for review in editor.open_reviews] == [str(large), str(small)]


@patient
async def test_the_next_review_is_shown_when_the_accepted_agent_has_written(
    companion: Companion, editor: HeadlessEditor, one: Recorder, two: Recorder, path: str
) -> None:
    first = await companion.open_diff(one, path, "first\n")
    second = await companion.open_diff(two, path, "second\n")
    assert await companion.answers.accept(first.id) is not None
    assert editor.open_reviews == ()
    Path(path).write_text("first\n", encoding="utf-8")
    await _is_shown(editor, second)


@pytest.mark.slow
async def test_an_accepted_agent_that_writes_nothing_holds_the_next_review_only_briefly(
    companion: Companion, editor: HeadlessEditor, one: Recorder, two: Recorder, path: str
) -> None:
    first = await companion.open_diff(one, path, "first\n")
    second = await companion.open_diff(two, path, "second\n")
    await companion.answers.accept(first.id)
    await _is_shown(editor, second)


@patient
async def test_the_accepted_agent_itself_need_not_wait_when_it_asks_again(
    companion: Companion, editor: HeadlessEditor, one: Recorder, two: Recorder, path: str
) -> None:
    first = await companion.open_diff(one, path, "first\n")
    await companion.answers.accept(first.id)
    again = await companion.open_diff(one, path, "again\n")
    assert [review.id for review in editor.open_reviews] == [again.id]


async def test_a_link_and_its_end_are_one_file_and_other_files_do_not_wait(
    companion: Companion, editor: HeadlessEditor, one: Recorder, two: Recorder, path: str, workspace: Path
) -> None:
    link = workspace / "link.py"
    link.symlink_to(path)
    first = await companion.open_diff(one, path, "first\n")
    linked = await companion.open_diff(two, str(link), "linked\n")
    other = await companion.open_diff(two, str(workspace / "other.py"), "other\n")
    assert [review.id for review in editor.open_reviews] == [first.id, other.id]
    assert not companion.reviews.is_shown(linked.id)


async def test_a_client_that_closes_a_waiting_review_gets_its_proposal_back(
    companion: Companion, editor: HeadlessEditor, one: Recorder, two: Recorder, path: str
) -> None:
    first = await companion.open_diff(one, path, "first\n")
    await companion.open_diff(two, path, "second\n")
    closed = await companion.queue.close_oldest(two, path)
    assert closed is not None
    assert closed.state == Closed("second\n")
    assert [review.id for review in editor.open_reviews] == [first.id]


async def test_a_waiting_review_can_be_answered_from_the_terminal_and_is_never_shown(
    companion: Companion, editor: HeadlessEditor, one: Recorder, two: Recorder, path: str
) -> None:
    first = await companion.open_diff(one, path, "first\n")
    second = await companion.open_diff(two, path, "second\n")
    decided = await companion.answers.accept(second.id)
    assert decided is not None
    assert decided.state == Accepted("second\n")
    assert [review.state for review in two.decisions] == [Accepted("second\n")]
    assert [review.id for review in editor.open_reviews] == [first.id]


async def test_a_review_that_cannot_be_shown_in_its_turn_gives_way_and_is_told(
    companion: Companion, editor: HeadlessEditor, one: Recorder, two: Recorder, path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    three = Recorder("three")
    companion.attach(three)
    first = await companion.open_diff(one, path, "first\n")
    second = await companion.open_diff(two, path, "second\n")
    third = await companion.open_diff(three, path, "third\n")
    show = editor.open_diff

    async def refuse_second(review: DiffReview) -> None:
        if review.id == second.id:
            raise EditorError("no window")
        await show(review)

    monkeypatch.setattr(editor, "open_diff", refuse_second)
    editor.reject_diff(first.id)
    await _is_shown(editor, third)
    assert [(review.id, review.state) for review in two.closed] == [(second.id, Closed("second\n", "no window"))]
    assert (one.closed, three.closed) == ([], [])
    await eventually_async(lambda: any("no window" in text for text in editor.messages), what="a message")


async def test_diffs_tells_which_of_them_is_shown_and_accept_takes_that_one(
    companion: Companion, editor: HeadlessEditor, one: Recorder, two: Recorder, path: str
) -> None:
    await companion.open_diff(one, path, "first\n")
    await companion.open_diff(two, path, "second\n")
    listed = (await COMMANDS["diffs"](companion, {}))["diffs"]
    assert [(review["agent"], review["shown"]) for review in listed] == [("First agent", True), ("Second agent", False)]
    answer = await COMMANDS["accept"](companion, {"path": path})
    assert answer["agent"] == "First agent"


async def test_two_reviews_of_one_client_with_names_of_their_own_both_get_their_turn(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str
) -> None:
    first = await companion.open_diff(one, path, "first\n", tab_name="tab 1")
    second = await companion.open_diff(one, path, "second\n", tab_name="tab 2")
    again = await companion.open_diff(one, path, "again\n", tab_name="tab 1")
    assert [review.id for review in one.closed] == [first.id]
    await _is_shown(editor, second)
    editor.reject_diff(second.id)
    await _is_shown(editor, again)


# The first answer.


async def test_of_two_answers_in_one_moment_the_first_wins_and_the_other_is_told(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str
) -> None:
    await companion.open_diff(one, path, "new\n")
    answers = await asyncio.gather(
        COMMANDS["accept"](companion, {"path": path}),
        COMMANDS["reject"](companion, {"path": path}),
        return_exceptions=True,
    )
    assert isinstance(answers[0], dict)
    assert isinstance(answers[1], ControlCommandError)
    assert re.search("was accepted by isthmus ide", str(answers[1]))
    assert [review.state for review in one.decisions] == [Accepted("new\n")]


async def test_an_editor_that_does_not_answer_leaves_the_review_open_and_the_user_is_told(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    review = await companion.open_diff(one, path, "new\n")

    async def refuse(review_id: str) -> str | None:
        raise EditorError("busy")

    with monkeypatch.context() as patch:
        patch.setattr(editor, "close_diff", refuse)
        with pytest.raises(EditorError, match="busy"):
            await companion.answers.accept(review.id)
    assert one.decisions == []
    assert await companion.answers.accept(review.id) is not None


@pytest.mark.slow
async def test_a_view_that_is_gone_without_an_answer_can_still_be_answered(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str
) -> None:
    review = await companion.open_diff(one, path, "new\n")
    await editor.close_diff(review.id)
    decided = await companion.answers.accept(review.id)
    assert decided is not None
    assert decided.state == Accepted("new\n")


# While the editor is about to show it: real ones read the file on disk first.


@pytest.fixture
def go_on(editor: HeadlessEditor, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event; until it is set, no review is shown."""
    go_on, show = asyncio.Event(), editor.open_diff

    async def look_first(review: DiffReview) -> None:
        await go_on.wait()
        await show(review)

    monkeypatch.setattr(editor, "open_diff", look_first)
    return go_on


async def _begun(companion: Companion, client: Recorder, path: str) -> tuple[asyncio.Task[DiffReview], DiffReview]:
    opening = asyncio.create_task(companion.open_diff(client, path, "new\n"))
    review = await eventually_async(lambda: companion.reviews.find(client.id, path), what="a review")
    assert review is not None
    return opening, review


async def _first_steps(work: Coroutine[object, object, T]) -> asyncio.Task[T]:
    """Start work, and return its task when it waits for something else."""
    task = asyncio.create_task(work)
    for _ in range(20):
        await asyncio.sleep(0)
    return task


async def test_an_answer_from_the_terminal_leaves_no_view(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str, go_on: asyncio.Event
) -> None:
    opening, review = await _begun(companion, one, path)
    answering = await _first_steps(companion.answers.accept(review.id))
    go_on.set()
    decided = await answering
    await opening
    assert decided is not None
    assert decided.state == Accepted("new\n")
    assert editor.open_reviews == ()


async def test_a_review_that_its_client_takes_back_leaves_no_view(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str, go_on: asyncio.Event
) -> None:
    opening, _ = await _begun(companion, one, path)
    closing = await _first_steps(companion.queue.close_oldest(one, path))
    go_on.set()
    closed = await closing
    await opening
    assert closed is not None
    assert closed.state == Closed("new\n")
    assert editor.open_reviews == ()


async def test_a_client_that_left_before_its_review_came_gets_none(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()
    go_on = asyncio.Event()

    async def busy() -> tuple[str, ...]:
        asked.set()
        await go_on.wait()
        return (str(Path(path).parent),)

    monkeypatch.setattr(editor, "workspace_folders", busy)
    opening = asyncio.create_task(companion.open_diff(one, path, "new\n"))
    await asyncio.wait_for(asked.wait(), 30)
    await companion.detach(one.id)
    go_on.set()
    with pytest.raises(EditorError, match="has left"):
        await opening
    assert (companion.reviews.all(), editor.open_reviews) == ((), ())


@pytest.mark.slow
async def test_a_replaced_review_ends_for_its_client_also_when_the_new_one_is_cancelled(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = await companion.open_diff(one, path, "new\n")
    closing = asyncio.Event()

    async def hang(review_id: str) -> str | None:
        closing.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(editor, "close_diff", hang)
        again = asyncio.create_task(companion.open_diff(one, path, "again\n"))
        await asyncio.wait_for(closing.wait(), 30)
        again.cancel()
        await asyncio.wait({again})
    assert [review.id for review in one.closed] == [former.id]


# Text that the user typed.


async def test_what_was_typed_is_kept_when_the_client_leaves_and_the_user_is_told_where(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    review = await companion.open_diff(one, path, "new\n")
    editor.edit_diff(review.id, "mine\n")
    await companion.detach(one.id)
    assert editor.open_reviews == ()
    assert _kept(companion) == ["mine\n"]
    (kept,) = companion.kept_texts.paths()
    await eventually_async(lambda: any(kept in text for text in editor.messages), what="a message")
    assert kept in caplog.text
    status = await COMMANDS["status"](companion, {})
    assert status["kept"] == [kept]


async def test_nothing_is_kept_of_a_proposal_that_nobody_changed(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str
) -> None:
    review = await companion.open_diff(one, path, "new\n")
    editor.edit_diff(review.id, "mine\n")
    editor.edit_diff(review.id, "new\n")
    await companion.detach(one.id)
    assert companion.kept_texts.paths() == []


async def test_an_answer_in_the_moment_in_which_the_client_leaves_is_kept(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str
) -> None:
    review = await companion.open_diff(one, path, "new\n")
    editor.edit_diff(review.id, "mine\n")
    editor.accept_diff(review.id)  # sent, but not handled yet
    await companion.detach(one.id)
    await eventually_async(lambda: _kept(companion) == ["mine\n"], what="the kept text")


async def test_what_was_accepted_for_an_agent_that_does_not_hear_it_is_kept(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str
) -> None:
    review = await companion.open_diff(one, path, "new\n")
    one.connected = False
    await companion.answers.accept(review.id, "mine\n")
    assert _kept(companion) == ["mine\n"]
    assert [review.state for review in one.decisions] == [Accepted("mine\n")]


async def test_what_was_typed_is_kept_when_the_same_client_asks_anew(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str
) -> None:
    review = await companion.open_diff(one, path, "new\n")
    editor.edit_diff(review.id, "mine\n")
    newer = await companion.open_diff(one, path, "newer\n")
    assert [review.id for review in one.closed] == [review.id]
    assert _kept(companion) == ["mine\n"]
    assert [shown.id for shown in editor.open_reviews] == [newer.id]


async def test_closing_by_id_keeps_what_was_typed_and_closing_again_says_how_it_ended(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str
) -> None:
    review = await companion.open_diff(one, path, "new\n")
    editor.edit_diff(review.id, "mine\n")
    closed = await companion.queue.close(review.id)
    assert closed is not None
    assert closed.state == Closed("mine\n")
    assert await companion.queue.close(review.id) == closed
    assert await companion.queue.close("unknown") is None
    assert _kept(companion) == ["mine\n"]
    assert one.closed == []


async def test_closing_all_of_a_client_tells_it_of_each_and_leaves_those_of_others(
    companion: Companion, editor: HeadlessEditor, one: Recorder, two: Recorder, path: str, workspace: Path
) -> None:
    own = [await companion.open_diff(one, str(workspace / name), "new\n") for name in ("b", "c")]
    own.append(await companion.open_diff(one, path, "mine\n"))
    other = await companion.open_diff(two, path, "theirs\n")
    assert await companion.queue.close_all(one.id) == 3
    assert await companion.queue.close_all(one.id) == 0
    assert [review.id for review in one.closed] == [review.id for review in own]
    assert two.closed == []
    await _is_shown(editor, other)


async def test_an_editor_that_crashes_leaves_what_it_told_last_and_its_clients_are_told(
    editor: HeadlessEditor, tmp_path: Path, path: str
) -> None:
    companion, client = Companion(editor, kept=KeptTexts(tmp_path / "kept")), Recorder()
    companion.attach(client)
    running = asyncio.create_task(companion.run())
    review = await companion.open_diff(client, path, "new\n")
    editor.edit_diff(review.id, "mine\n")
    editor.quit()
    await asyncio.wait_for(running, 30)
    assert _kept(companion) == ["mine\n"]
    assert [closed.id for closed in client.closed] == [review.id]
    assert client.decisions == []
    with pytest.raises(EditorError, match="ends"):
        await companion.open_diff(client, path, "newer\n")


async def test_a_stopping_companion_closes_views_tells_clients_and_keeps_what_was_typed(
    editor: HeadlessEditor, tmp_path: Path, path: str, workspace: Path
) -> None:
    companion, one, two = Companion(editor, kept=KeptTexts(tmp_path / "kept")), Recorder("one"), Recorder("two")
    companion.attach(one)
    companion.attach(two)
    running = asyncio.create_task(companion.run())
    await editor.open_file(path)
    await eventually_async(lambda: one.contexts, what="a context: the companion runs")
    first = await companion.open_diff(one, path, "first\n")
    second = await companion.open_diff(two, path, "second\n")
    third = await companion.open_diff(two, str(workspace / "other"), "third\n")
    editor.edit_diff(first.id, "mine\n")
    running.cancel()
    await asyncio.wait({running})
    assert editor.open_reviews == ()
    assert [review.id for review in one.closed] == [first.id]
    assert [review.id for review in two.closed] == [second.id, third.id]
    assert _kept(companion) == ["mine\n"]


async def test_what_cannot_be_kept_is_said(
    editor: HeadlessEditor, tmp_path: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    companion, client = Companion(editor, kept=KeptTexts(tmp_path / "file" / "kept")), Recorder()
    companion.attach(client)
    review = await companion.open_diff(client, path, "new\n")
    editor.edit_diff(review.id, "mine\n")
    await companion.detach(client.id)
    assert "could not be kept" in caplog.text


async def test_a_name_that_is_no_unicode_is_reviewed_like_any_other(
    companion: Companion, editor: HeadlessEditor, one: Recorder, workspace: Path
) -> None:
    path = os.fsdecode(os.fsencode(workspace) + b"/caf\xe9.txt")
    Path(path).write_bytes(b"old\n")
    review = await companion.open_diff(one, path, "new\n")
    editor.edit_diff(review.id, "mine\n")
    await companion.detach(one.id)
    assert _kept(companion) == ["mine\n"]


async def test_what_was_accepted_while_its_client_asked_again_is_kept(
    companion: Companion, editor: HeadlessEditor, one: Recorder, path: str
) -> None:
    review = await companion.open_diff(one, path, "new\n")
    editor.edit_diff(review.id, "mine\n")
    editor.accept_diff(review.id)  # its event is under way when the client asks again
    await companion.open_diff(one, path, "newer\n")
    await eventually_async(lambda: _kept(companion) == ["mine\n"] or one.heard, what="the text is kept or told")
