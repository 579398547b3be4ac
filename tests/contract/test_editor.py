"""The contract of every Editor: one suite, run on each implementation in DRIVERS."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.ide.editor import (
    Capability,
    ContextChanged,
    DiffAccepted,
    DiffRejected,
    EditorError,
    EditorEvent,
    EditorGoneError,
    OpenFile,
    Position,
    Range,
)
from isthmus.ide.reviews.review import DiffReview
from support.editor_capabilities import needs, refuses
from support.editor_driver import DRIVERS, EditorDriver
from support.remote_editor_driver import RemoteEditorDriver
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture(params=sorted(DRIVERS))
async def driver(request: pytest.FixtureRequest, workspace: Path) -> AsyncGenerator[EditorDriver]:
    async with DRIVERS[request.param](workspace) as driver:
        yield driver


class Listener:
    """A reader of an editor's events, as a companion is."""

    def __init__(self, driver: EditorDriver) -> None:
        self.events: list[EditorEvent] = []
        self.task = asyncio.create_task(self._read(driver))

    async def _read(self, driver: EditorDriver) -> None:
        async for event in driver.editor.changes():
            self.events.append(event)

    async def decision(self, review: DiffReview) -> DiffAccepted | DiffRejected:
        def found() -> DiffAccepted | DiffRejected | None:
            decisions = [event for event in self.events if isinstance(event, (DiffAccepted, DiffRejected))]
            return next((event for event in decisions if event.review_id == review.id), None)

        decision = await eventually_async(found, what="a decision")
        assert decision is not None
        return decision

    async def end(self) -> None:
        await asyncio.wait_for(self.task, 120)


@pytest.fixture
async def listener(driver: EditorDriver) -> AsyncGenerator[Listener]:
    listener = Listener(driver)
    yield listener
    listener.task.cancel()
    await asyncio.wait({listener.task})


def _at(line: int, character: int, end_line: int | None = None, end_character: int | None = None) -> Range:
    start = Position(line, character)
    if end_line is None or end_character is None:
        return Range(start, start)
    return Range(start, Position(end_line, end_character))


def _file(workspace: Path, name: str, content: bytes = b"one\ntwo\nthree\n") -> Path:
    path = workspace / name
    path.write_bytes(content)
    return path


async def _active(driver: EditorDriver, path: Path, **expected: Any) -> OpenFile:
    """Wait until a file is the active one, with these members, and return it."""

    async def found() -> OpenFile | None:
        files = [file for file in await driver.editor.open_files() if file.is_active and file.path == str(path)]
        return files[0] if files and all(getattr(files[0], key) == value for key, value in expected.items()) else None

    file = await eventually_async(found, what=f"{path} is active with {expected}")
    assert file is not None
    return file


async def test_it_says_who_it_is_and_where(driver: EditorDriver, workspace: Path) -> None:
    identity = driver.editor.identity
    assert identity.name == identity.name.lower()
    assert identity.name
    assert identity.display_name
    assert identity.pid > 0
    assert await driver.editor.workspace_folders() == (str(workspace),)


async def test_what_it_lacks_it_refuses_with_the_reason(driver: EditorDriver) -> None:
    for capability, reason in driver.editor.unavailable.items():
        assert reason
        await refuses(driver, capability)


async def test_a_file_that_the_user_opens_is_active_and_told(
    driver: EditorDriver, listener: Listener, workspace: Path
) -> None:
    path = _file(workspace, "a.py")
    await driver.open(path)
    file = await _active(driver, path)
    assert not file.is_dirty
    await eventually_async(lambda: ContextChanged() in listener.events, what="an event")


async def test_the_file_that_was_focused_last_is_the_active_one_and_the_newest(
    driver: EditorDriver, workspace: Path
) -> None:
    one, two = _file(workspace, "one.py"), _file(workspace, "two.py")
    for path in (one, two, one):
        await driver.open(path)
        await _active(driver, path)
    files = {file.path: file for file in await driver.editor.open_files()}
    assert set(files) == {str(one), str(two)}
    assert files[str(one)].focused_at >= files[str(two)].focused_at
    assert [file.is_active for file in files.values()].count(True) == 1


@needs(Capability.SELECTION)
async def test_cursor_and_selection_count_utf16_units(
    driver: EditorDriver, listener: Listener, workspace: Path
) -> None:
    path = _file(workspace, "a.py", "x = '😀é' # end\n".encode())
    await driver.open(path)
    await driver.select(_at(0, 7))
    await _active(driver, path, cursor=Position(0, 7))
    await driver.select(_at(0, 5, 0, 8))
    file = await _selected(driver, path)
    assert file.selection is not None
    assert file.selection.text == "😀é"
    assert file.selection.range == _at(0, 5, 0, 8)


async def _selected(driver: EditorDriver, path: Path) -> OpenFile:
    async def found() -> OpenFile | None:
        files = [file for file in await driver.editor.open_files() if file.path == str(path)]
        return files[0] if files and files[0].selection is not None else None

    file = await eventually_async(found, what="a selection")
    assert file is not None
    return file


def _uses_claude_protocol(driver: EditorDriver) -> bool:
    """Return whether the editor is reached by the Claude protocol, without columns and the texts of closed views."""
    return isinstance(driver, RemoteEditorDriver) and driver.protocol == "claude"


@needs(Capability.SELECTION)
async def test_a_selection_over_lines_has_their_newlines(
    driver: EditorDriver, listener: Listener, workspace: Path
) -> None:
    path = _file(workspace, "a.py")
    await driver.open(path)
    await driver.select(_at(0, 1, 2, 2))
    file = await _selected(driver, path)
    assert file.selection is not None
    assert file.selection.text == "ne\ntwo\nth"


@needs(Capability.OPEN, Capability.SELECTION)
async def test_an_agent_can_open_a_file_at_a_place(driver: EditorDriver, listener: Listener, workspace: Path) -> None:
    path = _file(workspace, "a.py")
    await driver.editor.open_file(str(path), _at(1, 2))
    if _uses_claude_protocol(driver):
        file = await _active(driver, path)
        assert file.cursor is not None
        assert file.cursor.line == 1
    else:
        await _active(driver, path, cursor=Position(1, 2))


@needs(Capability.OPEN, Capability.SELECTION)
@pytest.mark.parametrize("content", [b"one\ntwo\nthree\n", b"one\ntwo\nthree"], ids=["newline", "no newline"])
async def test_lines_up_to_the_last_one_are_selected_whole(
    driver: EditorDriver, listener: Listener, workspace: Path, content: bytes
) -> None:
    path = _file(workspace, "a.py", content)
    await driver.editor.open_file(str(path), _at(1, 0, 3, 0))
    file = await _selected(driver, path)
    assert file.selection is not None
    assert file.selection.text.removesuffix("\n") == "two\nthree"


@needs(Capability.OPEN)
async def test_a_file_opened_in_the_background_does_not_take_the_focus(
    driver: EditorDriver, listener: Listener, workspace: Path
) -> None:
    one, two = _file(workspace, "one.py"), _file(workspace, "two.py")
    await driver.open(one)
    await _active(driver, one)
    await driver.editor.open_file(str(two), focus=False)
    await _active(driver, one)
    assert str(two) in {file.path for file in await driver.editor.open_files()}


@needs(Capability.OPEN)
async def test_a_missing_file_cannot_be_opened(driver: EditorDriver, workspace: Path) -> None:
    with pytest.raises(EditorError, match="missing"):
        await driver.editor.open_file(str(workspace / "missing.py"))


@needs(Capability.OPEN)
async def test_what_is_no_file_cannot_be_opened_and_is_not_waited_for(driver: EditorDriver, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    for path in (workspace, workspace / "pipe", Path("/dev/zero")):
        with pytest.raises(EditorError, match=str(path)):
            await driver.editor.open_file(str(path))


@needs(Capability.CLOSE)
async def test_a_closed_file_is_gone_and_closing_it_again_is_no_error(driver: EditorDriver, workspace: Path) -> None:
    path = _file(workspace, "a.py")
    await driver.open(path)
    await driver.editor.close_file(str(path))

    async def is_gone() -> bool:
        return str(path) not in {file.path for file in await driver.editor.open_files()}

    await eventually_async(is_gone, what="the file is gone")
    await driver.editor.close_file(str(path))


@needs(Capability.DIRTY, Capability.SAVE, Capability.CLOSE)
async def test_unsaved_changes_are_known_kept_and_saved_on_request(driver: EditorDriver, workspace: Path) -> None:
    path = _file(workspace, "a.py")
    assert await driver.editor.is_dirty(str(path)) is None
    await driver.open(path)
    assert await driver.editor.is_dirty(str(path)) is False
    await driver.type_over("changed\n")
    assert await driver.editor.is_dirty(str(path)) is True
    with pytest.raises(EditorError, match="unsaved"):
        await driver.editor.close_file(str(path))
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    await driver.editor.save(str(path))
    assert path.read_bytes() == b"changed\n"
    assert await driver.editor.is_dirty(str(path)) is False


@needs(Capability.TEXT)
async def test_the_text_of_an_open_file_has_what_is_not_saved(driver: EditorDriver, workspace: Path) -> None:
    path = _file(workspace, "a.py", "one\r\ntwo 😀\r\n".encode())
    assert await driver.editor.text(str(path)) is None
    await driver.open(path)
    assert await driver.editor.text(str(path)) == "one\r\ntwo 😀\r\n"
    await driver.type_over("changed\n")

    async def is_told() -> bool:
        return (await driver.editor.text(str(path)) or "").replace("\r\n", "\n") == "changed\n"

    await eventually_async(is_told, what="the text that is not saved")
    assert path.read_bytes() == "one\r\ntwo 😀\r\n".encode()


@needs(Capability.SAVE)
async def test_saving_an_unchanged_file_leaves_it_untouched(driver: EditorDriver, workspace: Path) -> None:
    path = _file(workspace, "a.py", b"\xef\xbb\xbfone\r\ntwo")
    await driver.open(path)
    before = path.stat()
    await driver.editor.save(str(path))
    after = path.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


@needs(Capability.SAVE)
async def test_what_is_not_open_cannot_be_saved(driver: EditorDriver, workspace: Path) -> None:
    with pytest.raises(EditorError):
        await driver.editor.save(str(_file(workspace, "a.py")))


@needs(Capability.RELOAD, Capability.TEXT)
async def test_a_file_written_by_another_program_is_read_again(driver: EditorDriver, workspace: Path) -> None:
    path, other = _file(workspace, "a.py"), _file(workspace, "b.py")
    await driver.open(path)
    await driver.open(other)
    path.write_bytes("één\r\ntwo 😀\r\n".encode())
    other.write_bytes(b"other\n")
    await driver.editor.reload([str(path), str(other), str(workspace / "not_open.py")])

    async def shown() -> bool:
        texts = [await driver.editor.text(str(each)) for each in (path, other)]
        return texts == ["één\r\ntwo 😀\r\n", "other\n"]

    await eventually_async(shown, what="the buffers equal the disk")
    files = {file.path: file.is_dirty for file in await driver.editor.open_files()}
    assert files == {str(path): False, str(other): False}


@needs(Capability.RELOAD, Capability.TEXT, Capability.DIRTY)
async def test_unsaved_changes_are_kept_when_the_file_is_written(driver: EditorDriver, workspace: Path) -> None:
    path = _file(workspace, "a.py")
    await driver.open(path)
    await driver.type_over("mine\n")
    path.write_bytes(b"a new text of another program\n")
    await driver.editor.reload([str(path)])
    await eventually_async(lambda: driver.has_message("changed on disk"), what="the message")
    assert await driver.editor.text(str(path)) == "mine\n"
    assert await driver.editor.is_dirty(str(path)) is True
    assert path.read_bytes() == b"a new text of another program\n"


def _review(path: Path, proposed: str, name: str = "r1") -> DiffReview:
    return DiffReview(name, str(path), proposed, "owner", "An agent")


@pytest.mark.parametrize(
    "proposed", ["one\nTWO\nthree\n", "no newline", "", "a\r\nb\r\n", "\ufeffmark\n", "\n\n", "😀\n"], ids=repr
)
async def test_an_accepted_proposal_comes_back_exactly_and_no_file_is_written(
    driver: EditorDriver, listener: Listener, workspace: Path, proposed: str
) -> None:
    path = _file(workspace, "a.py")
    review = _review(path, proposed)
    await driver.editor.open_diff(review)
    await driver.accept(review)
    assert await listener.decision(review) == DiffAccepted(review.id, proposed)
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    assert await driver.editor.close_diff(review.id) is None


async def test_the_users_edits_in_a_review_are_what_is_accepted(
    driver: EditorDriver, listener: Listener, workspace: Path
) -> None:
    review = _review(_file(workspace, "a.py"), "one\n2\nthree\n")
    await driver.editor.open_diff(review)
    await driver.edit_review(review, "one\n22\nthree\n")
    await driver.accept(review)
    assert await listener.decision(review) == DiffAccepted(review.id, "one\n22\nthree\n")


async def test_closing_a_review_without_accepting_rejects_it(
    driver: EditorDriver, listener: Listener, workspace: Path
) -> None:
    review = _review(_file(workspace, "a.py"), "new\n")
    await driver.editor.open_diff(review)
    await driver.reject(review)
    assert await listener.decision(review) == DiffRejected(review.id)


@pytest.mark.slow
async def test_a_review_taken_back_returns_its_text_and_no_decision_follows(
    driver: EditorDriver, listener: Listener, workspace: Path
) -> None:
    path = _file(workspace, "a.py")
    first, second = _review(path, "new\n"), _review(path, "newer\n", "r2")
    await driver.editor.open_diff(first)
    await driver.edit_review(first, "mine\n")
    taken_back = await driver.editor.close_diff(first.id)
    assert taken_back == ("new\n" if _uses_claude_protocol(driver) else "mine\n")
    assert await driver.editor.close_diff(first.id) is None
    await driver.editor.open_diff(second)
    await driver.reject(second)
    await listener.decision(second)
    assert [event for event in listener.events if isinstance(event, (DiffAccepted, DiffRejected))] == [
        DiffRejected(second.id)
    ]


async def test_reviews_of_several_files_are_answered_each_for_itself(
    driver: EditorDriver, listener: Listener, workspace: Path
) -> None:
    one = _review(_file(workspace, "one.py"), "1\n", "r1")
    two = _review(_file(workspace, "two.py"), "2\n", "r2")
    await driver.editor.open_diff(one)
    await driver.editor.open_diff(two)
    await driver.accept(one)
    assert await listener.decision(one) == DiffAccepted("r1", "1\n")
    await driver.reject(two)
    assert await listener.decision(two) == DiffRejected("r2")


async def test_a_new_file_can_be_reviewed_and_is_not_made(
    driver: EditorDriver, listener: Listener, workspace: Path
) -> None:
    path = workspace / "folder" / "new.py"
    review = _review(path, "new\n")
    await driver.editor.open_diff(review)
    await driver.accept(review)
    assert await listener.decision(review) == DiffAccepted(review.id, "new\n")
    assert not path.parent.exists()


async def test_reviews_are_never_among_the_open_files(
    driver: EditorDriver, listener: Listener, workspace: Path
) -> None:
    path = _file(workspace, "a.py")
    await driver.open(path)
    await _active(driver, path)
    await driver.editor.open_diff(_review(_file(workspace, "b.py"), "new\n"))
    await driver.editor.open_diff(_review(workspace / "missing.py", "new\n", "r2"))
    files = await driver.editor.open_files()
    assert {file.path for file in files} <= {str(path), str(workspace / "b.py")}
    assert [file.path for file in files if file.is_active] == [str(path)]


async def test_a_decision_taken_while_nobody_reads_is_told_later(driver: EditorDriver, workspace: Path) -> None:
    review = _review(_file(workspace, "a.py"), "new\n")
    await driver.editor.open_diff(review)
    await driver.accept(review)
    listener = Listener(driver)
    assert await listener.decision(review) == DiffAccepted(review.id, "new\n")
    listener.task.cancel()
    await asyncio.wait({listener.task})


@needs(Capability.DIAGNOSTICS)
async def test_files_without_findings_have_no_diagnostics(driver: EditorDriver, workspace: Path) -> None:
    path = _file(workspace, "a.py")
    await driver.open(path)
    assert await driver.editor.diagnostics(str(path)) == ()
    assert await driver.editor.diagnostics() == ()


async def test_a_message_is_shown_without_waiting_for_the_user(driver: EditorDriver) -> None:
    async with asyncio.timeout(60):
        await driver.editor.show_message("An agent says: 'hello'\nand\t\"more\" | quit")
    await eventually_async(lambda: driver.has_message("An agent says: 'hello'"), what="the message")


@pytest.mark.slow
async def test_the_events_end_when_the_editor_quits_and_then_it_is_gone(
    driver: EditorDriver, listener: Listener
) -> None:
    await driver.quit()
    await listener.end()
    with pytest.raises(EditorGoneError):
        await driver.editor.open_files()
    with pytest.raises(EditorGoneError):
        await driver.editor.show_message("anybody?")


async def test_letting_go_closes_the_reviews_and_decides_nothing(
    driver: EditorDriver, listener: Listener, workspace: Path
) -> None:
    await driver.editor.open_diff(_review(_file(workspace, "a.py"), "new\n"))
    await driver.editor.aclose()
    await listener.end()
    assert [event for event in listener.events if isinstance(event, (DiffAccepted, DiffRejected))] == []
    await driver.editor.aclose()
