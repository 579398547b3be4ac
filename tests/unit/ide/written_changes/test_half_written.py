"""Files that an editor or an agent is writing while the workspace is compared."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.written_changes.followed_files import MAXIMUM_SETTLING_SECONDS, SETTLING_SECONDS
from isthmus.ide.written_changes.recorder import Recorder
from isthmus.ide.written_changes.store import open_store
from isthmus.ide.written_changes.written_changes import WrittenChanges
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

AGENT = ("Claude Code",)
OLD = "one\ntwo\nthree\n"
NEW = "one\ntwo\nmine\n"


class _Workspace:
    """A workspace with one file, and its recorder, whose clock goes on when it is told to."""

    def __init__(self, folder: Path, stores: Path) -> None:
        self.path = folder / "a.txt"
        self.path.write_text(OLD)
        self.now = 0.0
        self.store = open_store(stores, "headless", (str(folder),))
        self.recorder = Recorder(self.store, (str(folder),), lambda: self.now)
        self.recorder.look(None)

    def write(self, text: str) -> None:
        """Write the file; the clock shows that moment."""
        self.path.write_text(text)
        self.now = self.path.stat().st_ctime

    def look(self, *, leaves_recent: bool = True) -> bool:
        return self.recorder.look(AGENT, leaves_recent=leaves_recent)

    @property
    def agents_lines(self) -> list[tuple[str, str]]:
        hunks = self.recorder.ledger.hunks(str(self.path))
        return [("".join(hunk.old), "".join(hunk.new)) for hunk in hunks]


@pytest.fixture
def place(workspace: Path, tmp_path: Path) -> Iterator[_Workspace]:
    place = _Workspace(workspace, tmp_path / "stores")
    yield place
    place.store.close()


def _changed_at(path: Path) -> float:
    return (path if path.exists() else path.parent).stat().st_ctime


def _remove(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_text("")


@pytest.mark.parametrize("begin", [_empty, _remove])
def test_what_a_save_has_begun_is_not_an_agents(place: _Workspace, begin: Callable[[Path], None]) -> None:
    begin(place.path)
    place.now = _changed_at(place.path)
    assert not place.look()
    assert place.recorder.being_written == (str(place.path),)
    place.write(NEW)
    assert not place.look()
    place.recorder.saved(str(place.path))
    assert (place.agents_lines, place.recorder.being_written) == ([], ())
    assert not place.look()


@pytest.mark.parametrize("change", [_empty, _remove])
def test_what_stays_so_is_an_agents_at_a_later_look(place: _Workspace, change: Callable[[Path], None]) -> None:
    change(place.path)
    place.now = _changed_at(place.path)
    assert not place.look()
    place.now += 1.5 * SETTLING_SECONDS
    assert place.look()
    assert place.agents_lines == [(OLD, "")]
    assert not place.recorder.being_written


@pytest.mark.parametrize("text", ["", "one\n"])
def test_a_file_that_was_cut_without_a_new_time_is_left_once(place: _Workspace, text: str) -> None:
    before = place.path.stat().st_mtime_ns
    place.write(text)
    os.utime(place.path, ns=(before, before))
    place.now += 2 * SETTLING_SECONDS
    assert not place.look()
    place.now += 1.5 * SETTLING_SECONDS
    assert place.look()


def test_a_file_that_changes_all_the_time_is_compared_all_the_same(place: _Workspace) -> None:
    place.write("0\n")
    began = place.now - 3600  # for this clock each change is of just now
    looks = 0
    place.now = began
    while not place.look():
        looks += 1
        place.write(f"{looks}\n")
        place.now = began + looks * MAXIMUM_SETTLING_SECONDS / 4
    assert looks == 4


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0])
def test_a_file_system_with_another_clock_hides_nothing(place: _Workspace, ahead: float) -> None:
    place.write(NEW)
    place.now -= ahead
    if ahead > 0:
        assert not place.look()
        place.now += 1.5 * SETTLING_SECONDS
    assert place.look()


def test_a_clock_that_is_set_back_hides_nothing(place: _Workspace) -> None:
    place.write(NEW)
    assert not place.look()
    place.now -= 3600
    assert place.look()


def test_a_new_file_is_compared_when_it_is_whole(place: _Workspace) -> None:
    new = place.path.with_name("b.txt")
    new.write_text("half")
    place.now = new.stat().st_ctime
    assert not place.look()
    new.write_text("half\nwhole\n")
    place.now = new.stat().st_ctime + 1.5 * SETTLING_SECONDS
    assert place.recorder.look(AGENT, place.recorder.being_written, leaves_recent=True)
    assert [hunk.new for hunk in place.recorder.ledger.hunks(str(new))] == [("half\n", "whole\n")]


def test_a_look_that_leaves_nothing_records_what_was_left(place: _Workspace) -> None:
    place.write(NEW)
    assert not place.look()
    assert place.look(leaves_recent=False)
    assert (len(place.agents_lines), place.recorder.being_written) == (1, ())


class _Follower:
    """A companion's follower; while it waits for a file that is half written, the file becomes whole."""

    def __init__(self, workspace: Path, stores: Path) -> None:
        self.path = workspace / "a.txt"
        self.path.write_text(OLD)
        self.agents: tuple[str, ...] = AGENT
        self.waits = 0

        async def folders() -> list[str]:
            return [str(workspace)]

        self.changes = WrittenChanges(
            HeadlessEditor((str(workspace),)), lambda: self.agents, folders, stores, seconds=3600, sleep=self._sleep
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Follow the workspace."""
        running = asyncio.create_task(self.changes.run())
        self.changes.wake()

        async def follows() -> bool:
            return (await self.changes.listing())["following"]

        await eventually_async(follows, what="the workspace is followed")
        yield
        running.cancel()
        await asyncio.wait({running})

    async def _sleep(self, seconds: float) -> None:
        self.waits += 1
        if self.waits == 1:
            self.path.write_text(NEW)
        await asyncio.sleep(seconds)  # delay: the pause of the look itself

    async def lines(self) -> list[tuple[list[str], list[str]]]:
        """Return what an agent changed."""
        hunks = (await self.changes.file_diff(str(self.path), None))["hunks"]
        return [(hunk["old_lines"], hunk["new_lines"]) for hunk in hunks]


@pytest.fixture
async def follower(workspace: Path, tmp_path: Path) -> AsyncGenerator[_Follower]:
    follower = _Follower(workspace, tmp_path / "stores")
    async with follower.running():
        yield follower


async def test_what_the_user_asks_about_is_whole(follower: _Follower) -> None:
    follower.path.write_text("")
    assert await follower.lines() == [(["three\n"], ["mine\n"])]
    assert 1 <= follower.waits <= 1 + MAXIMUM_SETTLING_SECONDS / SETTLING_SECONDS


async def test_what_an_agent_wrote_last_is_its_own(follower: _Follower) -> None:
    follower.path.write_text("")
    follower.agents = ()
    await follower.changes.listing()
    assert await follower.lines() == [(["three\n"], ["mine\n"])]
