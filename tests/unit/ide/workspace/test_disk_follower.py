"""Which files an editor is asked to read again, and how long their new diagnostics are waited for."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from typing_extensions import override

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.editor import Capability, Diagnostic, EditorError, Position, Range, Severity
from isthmus.ide.options import CompanionLimits
from isthmus.ide.workspace.disk_follower import MAXIMUM_FILES, DiskFollower
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class _Editor(HeadlessEditor):
    """An editor that records what it is asked to read again, and checks all of it anew."""

    def __init__(self, unavailable: Mapping[Capability, str] = {}) -> None:
        super().__init__(("/",), unavailable=unavailable)
        self.asked: list[tuple[str, ...]] = []
        self.problem: EditorError | None = None

    @override
    async def reload(self, paths: Sequence[str]) -> tuple[str, ...]:
        self.asked.append(tuple(paths))
        if self.problem is not None:
            raise self.problem
        return tuple(paths)


class _Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def editor() -> _Editor:
    return _Editor()


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "a.py"
    path.write_text("old\n")
    return str(path)


async def test_only_what_changed_is_read_and_once(editor: _Editor, path: str, tmp_path: Path) -> None:
    other = tmp_path / "b.py"
    other.write_text("other\n")
    follower = DiskFollower(editor, lambda: True)
    follower.opened([path, str(other)])
    await follower.look()
    await follower.look()
    assert editor.asked == [(path, str(other))]
    Path(path).write_text("a new text\n")
    await follower.look()
    await follower.look()
    assert editor.asked[1:] == [(path,)]


async def test_a_file_that_is_missing_for_a_while_is_read_when_it_is_back(editor: _Editor, path: str) -> None:
    follower = DiskFollower(editor, lambda: True)
    follower.opened([path])
    await follower.look()
    Path(path).unlink()
    await follower.look()
    follower.opened([])  # editors report only files that exist
    assert editor.asked == [(path,)]
    Path(path).write_text("it is back\n")
    await follower.look()
    assert editor.asked[1:] == [(path,)]
    follower.opened([])
    Path(path).write_text("it is closed, though\n")
    await follower.look()
    assert len(editor.asked) == 2


async def test_the_number_of_files_is_limited(editor: _Editor, tmp_path: Path) -> None:
    paths = [str(tmp_path / str(number)) for number in range(MAXIMUM_FILES + 10)]
    for path in paths:
        Path(path).touch()
    follower = DiskFollower(editor, lambda: True)
    follower.opened(paths)
    await follower.look()
    assert editor.asked == [tuple(paths[:MAXIMUM_FILES])]


async def test_an_editor_that_cannot_read_files_again_is_not_asked(path: str) -> None:
    editor = _Editor({Capability.RELOAD: "it has no buffers"})
    follower = DiskFollower(editor, lambda: True)
    follower.opened([path])
    await follower.look()
    await asyncio.wait_for(follower.run(), 30)
    assert editor.asked == []


async def test_a_failing_editor_is_asked_about_the_next_change(editor: _Editor, path: str) -> None:
    editor.problem = EditorError("busy")
    follower = DiskFollower(editor, lambda: True)
    follower.opened([path])
    await follower.settled(path)
    editor.problem = None
    Path(path).write_text("a new text\n")
    await follower.look()
    assert editor.asked == [(path,), (path,)]


async def test_files_are_compared_while_an_agent_is_there_and_once_more(editor: _Editor, path: str) -> None:
    agents = ["agent"]
    follower = DiskFollower(editor, lambda: bool(agents), CompanionLimits(disk_seconds=0.01))
    follower.opened([path])
    running = asyncio.create_task(follower.run())
    try:
        for _ in range(3):
            await asyncio.sleep(0)
        assert editor.asked == []
        follower.wake()
        await eventually_async(lambda: len(editor.asked) == 1, what="it is read")
        Path(path).write_text("the last text\n")
        agents.clear()
        await eventually_async(lambda: len(editor.asked) == 2, what="it is read again")
    finally:
        running.cancel()
        await asyncio.wait({running})


async def test_diagnostics_count_as_complete_when_no_more_come(editor: _Editor, path: str) -> None:
    time = _Time()
    follower = DiskFollower(editor, lambda: True, CompanionLimits(quiet_diagnostics_seconds=0.01), time)
    follower.opened([path])
    waiting = asyncio.create_task(follower.settled(path))
    await eventually_async(lambda: bool(editor.asked), what="it is read")
    follower.diagnostics_changed(["/other.py"])
    await asyncio.wait({waiting}, timeout=0.05)
    assert not waiting.done()
    at = Range(Position(0, 0), Position(0, 1))
    editor.set_diagnostics(path, [Diagnostic(path, at, Severity.ERROR, "wrong")])
    follower.diagnostics_changed([path])
    time.now = 0.02
    await asyncio.wait_for(waiting, 1.5)
    await asyncio.wait_for(follower.settled(path), 1.5)
    await asyncio.wait_for(follower.settled(), 1.5)


async def test_a_first_report_of_none_is_waited_for_longer(editor: _Editor, path: str) -> None:
    time = _Time()
    limits = CompanionLimits(quiet_diagnostics_seconds=0.01, empty_diagnostics_seconds=1.0)
    follower = DiskFollower(editor, lambda: True, limits, time)
    follower.opened([path])
    waiting = asyncio.create_task(follower.settled(path))
    await eventually_async(lambda: bool(editor.asked), what="it is read")
    follower.diagnostics_changed([path])
    time.now = 0.5
    await asyncio.wait({waiting}, timeout=0.05)
    assert not waiting.done()
    follower.diagnostics_changed([path])
    time.now = 0.52
    await asyncio.wait_for(waiting, 0.5)


async def test_the_wait_for_diagnostics_has_an_end(editor: _Editor, path: str) -> None:
    follower = DiskFollower(editor, lambda: True, CompanionLimits(settle_diagnostics_seconds=0.1))
    follower.opened([path])
    await asyncio.wait_for(follower.settled(), 30)
    assert editor.asked == [(path,)]
    await asyncio.wait_for(follower.settled("/other.py"), 30)


async def test_a_file_that_changes_all_the_time_does_not_prolong_the_wait(editor: _Editor, path: str) -> None:
    time = _Time()
    limits = CompanionLimits(settle_diagnostics_seconds=2.0, quiet_diagnostics_seconds=10.0)
    follower = DiskFollower(editor, lambda: True, limits, time)
    follower.opened([path])
    waiting = asyncio.create_task(follower.settled())
    await eventually_async(lambda: bool(editor.asked), what="it is read")
    time.now = 1.5
    Path(path).write_text("a newer text\n")
    await follower.look()
    time.now = 2.1
    follower.diagnostics_changed([path])
    await asyncio.wait_for(waiting, 20)
