"""The companion between an editor and its clients, when answers cross."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.companion import Companion
from isthmus.ide.context_tracker import UserFocus
from isthmus.ide.control.commands import COMMANDS
from isthmus.ide.editor import (
    Capability,
    Diagnostic,
    Editor,
    EditorError,
    FileMentioned,
    NotAvailableError,
    Position,
    Range,
    Severity,
)
from isthmus.ide.options import CompanionOptions
from isthmus.ide.reviews.review import Accepted, Closed, DiffReview, Rejected
from support.companion_recorder import Recorder
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def editor(workspace: Path) -> HeadlessEditor:
    return HeadlessEditor(("/",))


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


async def test_the_editors_answer_beats_a_close_crossing_it_and_not_for_the_next_proposal(
    companion: Companion, editor: HeadlessEditor, client: Recorder
) -> None:
    review = await companion.open_diff(client, "/a", "new")
    editor.edit_diff(review.id, "mine")
    editor.accept_diff(review.id)  # sent, but not handled yet
    closed = await companion.queue.close_oldest(client, "/a")
    assert closed is not None
    assert closed.state == Accepted("mine")
    assert [decided.state for decided in client.decisions] == [Accepted("mine")]
    await companion.open_diff(client, "/a", "newer")
    closes = [await companion.queue.close_oldest(client, "/a") for _ in range(2)]
    assert [closed.state if closed else None for closed in closes] == [Closed("newer"), None]


@pytest.mark.slow
async def test_a_close_wins_over_an_answer_that_comes_after_it(
    companion: Companion, editor: HeadlessEditor, client: Recorder
) -> None:
    review = await companion.open_diff(client, "/a", "new")
    editor.edit_diff(review.id, "mine")
    closed = await companion.queue.close_oldest(client, "/a")
    assert closed is not None
    assert closed.state == Closed("mine")
    assert await companion.answers.accept(review.id) is None
    assert await companion.answers.reject(review.id) is None
    assert client.decisions == []


async def test_the_editor_wins_over_the_terminal_when_it_was_first(
    companion: Companion, editor: HeadlessEditor, client: Recorder
) -> None:
    review = await companion.open_diff(client, "/a", "new")
    editor.reject_diff(review.id)
    assert await companion.answers.accept(review.id, "other") is None
    await eventually_async(lambda: client.decisions, what="a decision")
    assert [decided.state for decided in client.decisions] == [Rejected()]


async def test_the_terminal_accepts_what_is_in_the_view_or_another_text(
    companion: Companion, editor: HeadlessEditor, client: Recorder
) -> None:
    for content, expected in ((None, "mine"), ("other", "other"), ("", "")):
        review = await companion.open_diff(client, "/a", "new")
        editor.edit_diff(review.id, "mine")
        decided = await companion.answers.accept(review.id, content)
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


async def test_an_agent_started_anew_gets_the_open_view_with_the_users_edits(
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


async def test_the_user_answers_the_agent_that_waits_before_one_that_is_gone(
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
    assert await companion.queue.close_oldest(client, "/a") is None


async def test_there_is_a_limit_of_open_reviews_and_it_is_said(companion: Companion, client: Recorder) -> None:
    for number in range(100):
        await companion.open_diff(client, f"/{number}", "new")
    with pytest.raises(EditorError, match="100"):
        await companion.open_diff(client, "/more", "new")
    await companion.open_diff(client, "/0", "newer, in the place of the one before")
    await companion.queue.close_oldest(client, "/0")
    await companion.open_diff(client, "/more", "new")


async def test_what_a_decision_means_to_its_client_is_shown_to_the_user(
    companion: Companion, editor: HeadlessEditor, client: Recorder
) -> None:
    client.warning = "sent as rejected"
    review = await companion.open_diff(client, "/a", "new")
    editor.accept_diff(review.id)
    await eventually_async(lambda: editor.messages == ("sent as rejected",), what="a message")


async def test_waiting_for_reviews_ends_with_the_first_one_or_at_the_deadline(
    companion: Companion, client: Recorder
) -> None:
    assert await companion.queue.wait(0.01) == ()
    waiting = asyncio.create_task(companion.queue.wait(10))
    review = await companion.open_diff(client, "/a", "new")
    assert await asyncio.wait_for(waiting, 30) == (review,)
    assert await companion.queue.wait(0) == (review,)


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


# Data that agents may get.


async def _open_paths(companion: Companion) -> list[str]:
    return [file.path for file in await companion.open_files()]


async def test_files_that_agents_must_not_know_are_in_no_answer_and_no_context(
    companion: Companion, editor: HeadlessEditor, client: Recorder, workspace: Path
) -> None:
    (workspace / ".aiexclude").write_text("secret.txt\n", encoding="utf-8")
    shown, secret, environment = (workspace / name for name in ("a.py", "secret.txt", ".env"))
    for path in (shown, secret, environment):
        path.write_text("one\ntwo\n", encoding="utf-8")
        await editor.open_file(str(path), Range(Position(0, 0), Position(1, 0)))
        editor.set_diagnostics(str(path), [_finding(str(path))])
    await eventually_async(lambda: client.contexts, what="a context")
    assert await _open_paths(companion) == [str(shown)]
    assert [file.path for file in (await companion.context()).files] == [str(shown)]
    assert {file.path for context in client.contexts for file in context.files} <= {str(shown)}
    assert companion.latest_selection is None, "what was selected last is hidden"
    assert {found.path for found in await companion.diagnostics()} == {str(shown)}
    assert await companion.diagnostics(str(secret)) == ()
    editor.mention(str(secret))
    editor.mention(str(shown), 0, 1)
    await eventually_async(lambda: client.mentions, what="a mention")
    assert client.mentions == [FileMentioned(str(shown), 0, 1)]
    await eventually_async(lambda: any("hidden" in text for text in editor.messages), what="a message")
    for path, reason in ((str(environment), "hidden from agents"), (f"{workspace}/caf\udce9", "not Unicode")):
        with pytest.raises(EditorError, match=reason):
            await companion.mention(path)


async def test_the_latest_selection_outlives_the_focus_and_goes_with_its_file(
    companion: Companion, editor: HeadlessEditor, workspace: Path
) -> None:
    selected, other = workspace / "a.py", workspace / "b.py"
    for path in (selected, other):
        path.write_text("one\ntwo\n", encoding="utf-8")
    assert companion.latest_selection is None
    await editor.open_file(str(selected), Range(Position(0, 0), Position(1, 0)))
    await companion.open_files()
    await editor.open_file(str(other))
    assert [file.selection for file in await companion.open_files()] == [None, None]
    latest = companion.latest_selection
    assert latest is not None
    assert latest.path == str(selected)
    assert latest.selection is not None
    assert latest.selection.text == "one\n"
    selected.unlink()
    assert companion.latest_selection is None


@asynccontextmanager
async def _companion_with(editor: Editor, options: CompanionOptions) -> AsyncGenerator[tuple[Companion, Recorder]]:
    companion, client = Companion(editor, options), Recorder()
    companion.attach(client)
    running = asyncio.create_task(companion.run())
    yield companion, client
    running.cancel()
    await asyncio.wait({running})


async def test_without_context_agents_are_told_of_no_file(editor: HeadlessEditor, workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text("one\ntwo\n", encoding="utf-8")
    options = CompanionOptions(share_context=False, is_trusted=True)
    async with _companion_with(editor, options) as (companion, client):
        await editor.open_file(str(path), Range(Position(0, 0), Position(1, 0)))
        editor.set_diagnostics(str(path), [_finding(str(path))])
        assert await _open_paths(companion) == []
        assert companion.latest_selection is None
        assert await companion.diagnostics() == ()
        assert [found.message for found in await companion.diagnostics(str(path))] == ["wrong"]
        assert await companion.context() == UserFocus((), True)
        with pytest.raises(EditorError, match="--no-context"):
            await companion.mention(str(path))
        assert client.mentions == []


async def test_without_selections_agents_are_told_of_files_and_of_no_text(
    editor: HeadlessEditor, workspace: Path
) -> None:
    path = workspace / "a.py"
    path.write_text("one\ntwo\n", encoding="utf-8")
    async with _companion_with(editor, CompanionOptions(share_selection=False)) as (companion, _):
        await editor.open_file(str(path), Range(Position(0, 0), Position(1, 0)))
        (file,) = await companion.open_files()
        assert (file.path, file.selection) == (str(path), None)
        assert companion.latest_selection is None


async def test_without_diffs_a_review_is_refused_and_the_agent_learns_where_to_ask(editor: HeadlessEditor) -> None:
    async with _companion_with(editor, CompanionOptions(show_diffs=False)) as (companion, client):
        assert not companion.shows_diffs
        with pytest.raises(EditorError, match="your own terminal"):
            await companion.open_diff(client, "/a", "new")
        assert editor.open_reviews == ()


@pytest.mark.parametrize(("said", "started", "told"), [(None, None, None), (True, None, True), (True, False, False)])
async def test_what_the_user_says_of_trust_counts_over_what_the_editor_says(
    workspace: Path, said: bool | None, started: bool | None, told: bool | None
) -> None:
    editor = HeadlessEditor((str(workspace),), is_trusted=said)
    async with _companion_with(editor, CompanionOptions(is_trusted=started)) as (companion, _):
        assert (await companion.context()).is_trusted is told


class HangingEditor(HeadlessEditor):
    """An editor that has diagnostics and never returns them."""

    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.slow
async def test_an_editor_that_hangs_does_not_hold_a_question_for_diagnostics(workspace: Path) -> None:
    async with _companion_with(HangingEditor((str(workspace),)), CompanionOptions()) as (companion, _):
        with pytest.raises(EditorError, match="did not report its diagnostics"):
            await companion.diagnostics()


class PlainEditor(HeadlessEditor):
    """An editor without diagnostics that opens no files."""

    @property
    def unavailable(self) -> Mapping[Capability, str]:
        lacks = {Capability.DIAGNOSTICS: "it has no linters", Capability.OPEN: "open it there"}
        return {**super().unavailable, **lacks}

    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        raise NotAvailableError(self.identity, "open it there")


async def test_an_editor_without_diagnostics_says_so(workspace: Path) -> None:
    async with _companion_with(PlainEditor((str(workspace),)), CompanionOptions()) as (companion, _):
        with pytest.raises(NotAvailableError, match="it has no linters"):
            await companion.diagnostics()


async def test_agents_are_pointed_to_a_file_also_where_the_editor_opens_none(workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text("one\n", encoding="utf-8")
    async with _companion_with(PlainEditor((str(workspace),)), CompanionOptions()) as (companion, client):
        await companion.mention(str(path), 0)
        assert client.mentions == [FileMentioned(str(path), 0, 0)]
        with pytest.raises(EditorError, match="there is no file"):
            await companion.mention(str(workspace / "b.py"))


async def test_a_mentioned_file_is_shown_selected_and_told_to_the_agent_used_last(
    companion: Companion, editor: HeadlessEditor, client: Recorder, workspace: Path
) -> None:
    path = workspace / "a.py"
    path.write_text("one\ntwo\nthree\n", encoding="utf-8")
    other, deaf, gone = Recorder("two"), Recorder("three", active_at=None), Recorder("four", connected=False)
    for one in (other, deaf, gone):
        companion.attach(one)
    client.active_at, other.active_at, gone.active_at = 2.0, 1.0, 3.0
    await COMMANDS["mention"](companion, {"path": str(path)})
    other.active_at = 4.0
    assert (await COMMANDS["mention"](companion, {"path": str(path), "line": 2, "end_line": 3}))["agents"] == 4
    assert client.mentions == [FileMentioned(str(path))]
    assert other.mentions == [FileMentioned(str(path), 1, 2)]
    assert deaf.mentions == gone.mentions == []
    latest = companion.latest_selection
    assert latest is not None
    assert latest.selection is not None
    assert latest.selection.text == "two\nthree\n"


def _finding(path: str) -> Diagnostic:
    return Diagnostic(path, Range(Position(0, 0), Position(0, 1)), Severity.ERROR, "wrong")


async def test_folders_that_a_busy_editor_tells_late_are_announced(
    editor: HeadlessEditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves: list[tuple[str, ...]] = []
    companion = Companion(editor, workspace_changed=lambda: moves.append(folders))
    folders = ("/one",)

    async def told() -> tuple[str, ...]:
        return folders

    monkeypatch.setattr(editor, "workspace_folders", told)
    for folders in (("/one",), ("/one",), ("/two",), ("/two",)):
        assert await companion.workspace_folders() == folders
    assert moves == [("/two",)]


async def test_a_mention_that_no_agent_takes_is_answered_in_the_editor(
    companion: Companion, client: Recorder, editor: HeadlessEditor, workspace: Path
) -> None:
    path = workspace / "a.py"
    path.write_text("one\n", encoding="utf-8")
    client.title, client.active_at = "Gemini CLI", None
    editor.mention(str(path))
    expected = f"Gemini CLI cannot be sent a file from here; write @ and its path in the prompt ({path})"
    await eventually_async(lambda: expected in editor.messages, what="a message")
    await companion.detach(client.id)
    editor.mention(str(path))
    await eventually_async(lambda: any("no agent is attached" in text for text in editor.messages), what="a message")


class _ObservingEditor(HeadlessEditor):
    def __init__(self) -> None:
        super().__init__(("/",))
        self.agents: list[list[str]] = []

    def agents_changed(self, titles: Mapping[str, str]) -> None:
        self.agents.append(sorted(titles.values()))


async def test_an_editor_that_wants_to_know_hears_which_agents_come_and_go() -> None:
    editor, client = _ObservingEditor(), Recorder()
    companion = Companion(editor)
    companion.attach(client)
    await companion.detach(client.id)
    assert editor.agents == [[client.title], []]
