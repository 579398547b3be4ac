"""Comparing a workspace with how it was seen, within limits, beside other writers and after a kill at any moment."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from isthmus.ide.written_changes import disk_files, recorder
from isthmus.ide.written_changes.disk_files import MAXIMUM_STORED_BYTES
from isthmus.ide.written_changes.ledger import ChangeError, ChangeSelection
from isthmus.ide.written_changes.recorder import Recorder
from isthmus.ide.written_changes.store import Store, open_store

AGENT = ("Claude Code",)
OLD = "one\ntwo\nthree\nfour\nfive\n"
NEW = "ONE\ntwo\nthree\nfour\nFIVE\n"


class _Killed(BaseException):
    """Stands for the end of the process."""


class _Place:
    """A workspace, and the stores of its companions."""

    def __init__(self, workspace: Path, folder: Path) -> None:
        self.workspace = workspace
        self.folder = folder
        self.now = 1_000_000.0
        self.stores: list[Store] = []

    def start(self, **limits: int) -> Recorder:
        self.stores.append(open_store(self.folder, "headless", (str(self.workspace),)))
        return Recorder(self.stores[-1], (str(self.workspace),), lambda: self.now, **limits)

    def follow(self, **limits: int) -> Recorder:
        made = self.start(**limits)
        made.look(None)
        return made

    def file(self, name: str, text: str) -> str:
        (self.workspace / name).write_text(text, encoding="utf-8")
        return str(self.workspace / name)

    def text(self, name: str = "a.txt") -> str:
        return (self.workspace / name).read_text(encoding="utf-8")


@pytest.fixture
def place(workspace: Path, tmp_path: Path) -> Iterator[_Place]:
    place = _Place(workspace, tmp_path / "stores")
    yield place
    for store in place.stores:
        store.close()


def _ids(made: Recorder, path: str, turn: int | None = None) -> tuple[str, ...]:
    return tuple(hunk.id for hunk in made.ledger.hunks(path, turn))


def test_a_write_between_the_look_and_the_undo_is_not_lost(place: _Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place.file("a.txt", OLD)
    made = place.follow()
    place.file("a.txt", NEW)
    made.look(AGENT)
    written = disk_files.write

    def late(*arguments: object) -> None:
        place.file("a.txt", NEW + "just now\n")  # after everything was decided, before it is written
        written(*arguments)  # type: ignore[reportArgumentType]

    monkeypatch.setattr(disk_files, "write", late)
    with pytest.raises(ChangeError, match="has changed since it was shown; nothing was written"):
        made.undo(ChangeSelection(path), {})
    assert place.text() == NEW + "just now\n"
    monkeypatch.undo()
    made.look(AGENT)
    assert len(made.ledger.hunks(path)) == 2
    made.undo(ChangeSelection(path), {})
    assert place.text() == OLD


def test_a_new_file_at_the_place_of_a_deleted_one_is_not_overwritten(
    place: _Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.file("a.txt", OLD)
    made = place.follow()
    Path(path).unlink()
    made.look(AGENT)
    written = disk_files.write

    def late(*arguments: object) -> None:
        place.file("a.txt", "of somebody else\n")
        written(*arguments)  # type: ignore[reportArgumentType]

    monkeypatch.setattr(disk_files, "write", late)
    with pytest.raises(ChangeError, match="has changed since"):
        made.undo(ChangeSelection(path), {})
    assert place.text() == "of somebody else\n"


@pytest.mark.parametrize("is_written", [True, False])
def test_a_kill_in_the_middle_of_an_undo_leaves_files_undone_or_as_they_were(
    place: _Place, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    paths = [place.file(name, OLD) for name in ("a.txt", "b.txt")]
    made = place.follow()
    for name in ("a.txt", "b.txt"):
        place.file(name, NEW)
    made.look(AGENT)
    written = disk_files.write

    def until_killed(path: str, *arguments: object) -> None:
        if path == paths[0] or is_written:
            written(path, *arguments)  # type: ignore[reportArgumentType]
        if path == paths[1]:
            raise _Killed

    monkeypatch.setattr(disk_files, "write", until_killed)
    with pytest.raises(_Killed):
        made.undo(ChangeSelection(), {})
    monkeypatch.undo()
    place.stores.pop().close()
    after = place.start()
    assert not after.look(AGENT)
    states = [{hunk.state.value for hunk in after.ledger.hunks(path)} for path in paths]
    assert states == [{"undone"}, {"undone" if is_written else "written"}]
    assert (place.text("a.txt"), place.text("b.txt")) == (OLD, OLD if is_written else NEW)
    after.take_back(None, {})
    assert (place.text("a.txt"), place.text("b.txt")) == (NEW, NEW)


def test_a_mode_that_a_kill_left_is_not_listed_as_undone(place: _Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place.file("a.sh", OLD)
    made = place.follow()
    Path(path).chmod(0o755)
    made.look(AGENT)

    def kill(*arguments: object) -> None:
        raise _Killed

    monkeypatch.setattr(disk_files, "write", kill)
    with pytest.raises(_Killed):
        made.undo(ChangeSelection(), {})
    monkeypatch.undo()
    place.stores.pop().close()
    after = place.start()
    after.look(AGENT)
    assert [hunk.state.value for hunk in after.ledger.hunks(path)] == ["written"]
    after.undo(ChangeSelection(), {})
    assert Path(path).stat().st_mode & 0o111 == 0


def test_a_kill_at_any_moment_of_a_recording_leaves_a_whole_state(place: _Place, tmp_path: Path) -> None:
    path = place.file("a.txt", OLD)
    made = place.follow()
    states: list[Path] = []

    def copy(step: str) -> None:
        if step.startswith(("INSERT", "DELETE", "BEGIN", "COMMIT")):
            folder = tmp_path / f"killed{len(states)}"
            shutil.copytree(place.folder, folder)
            states.append(folder)

    connection = made._store._connection  # type: ignore[reportPrivateUsage]
    connection.set_trace_callback(copy)
    place.file("a.txt", NEW)
    made.look(AGENT)
    connection.set_trace_callback(None)
    assert len(states) > 5
    found: list[int] = []
    for folder in states:
        store = open_store(folder, "headless", (str(place.workspace),))
        again = Recorder(store, (str(place.workspace),), lambda: place.now)
        found.append(len(again.ledger.files))
        again.look(AGENT)
        assert [len(again.ledger.hunks(path)), list(again.ledger.turns)] == [2, [1]]
        store.close()
    assert sorted(set(found)) in ([0], [0, 1])


def test_a_damaged_store_is_replaced(place: _Place) -> None:
    place.file("a.txt", OLD)
    place.follow()
    place.stores.pop().close()
    for file in place.folder.iterdir():
        file.write_bytes(b"not a database" * 1000)
    made = place.follow()
    place.file("a.txt", NEW)
    assert made.look(AGENT)


def test_two_companions_of_a_workspace_have_stores_of_their_own(place: _Place) -> None:
    path = place.file("a.txt", OLD)
    first, second = place.follow(), place.follow()
    assert place.stores[0].path != place.stores[1].path
    place.file("a.txt", NEW)
    assert (first.look(AGENT), second.look(AGENT)) == (True, True)
    first.undo(ChangeSelection(path), {})
    assert second.look(None)
    assert second.ledger.is_empty or not second.ledger.files[path].is_written
    assert [stat.S_IMODE(store.path.stat().st_mode) for store in place.stores] == [0o600, 0o600]


def test_files_over_the_limits_are_named_and_not_stored(place: _Place) -> None:
    large = place.workspace / "large.bin"
    large.write_bytes(b"\0" * (MAXIMUM_STORED_BYTES + 1))
    path = place.file("a.txt", OLD * 100)
    made = place.follow(maximum_bytes=100)
    large.write_bytes(b"\1" * (MAXIMUM_STORED_BYTES + 2))
    place.file("a.txt", NEW * 100)
    made.look(AGENT)
    with pytest.raises(ChangeError, match="more than 8 MiB"):
        made.undo(ChangeSelection(str(large)), {})
    with pytest.raises(ChangeError, match="the store of earlier contents was full"):
        made.undo(ChangeSelection(path), {})
    assert place.stores[0].stored_bytes <= 100


def test_private_files_are_named_and_never_read(place: _Place) -> None:
    (place.workspace / "keys").mkdir()
    place.file(".aiexclude", "/keys/\n")
    names = (".env", "id_rsa", "keys/a.txt", ".env.d")
    for name in names:
        place.file(name, "secret before\n")
    made = place.follow()
    for name in names:
        place.file(name, "secret afterwards\n")
    made.look(AGENT)
    assert [Path(path).name for path in sorted(made.ledger.files)] == [".env", ".env.d", "id_rsa", "a.txt"]
    assert place.stores[0].stored_bytes == len("/keys/\n")
    with pytest.raises(ChangeError, match="never stored"):
        made.undo(ChangeSelection(), {})
    assert place.text(".env") == "secret afterwards\n"


def test_a_save_is_the_users_and_one_of_an_agents_text_is_not(place: _Place) -> None:
    path = place.file("a.txt", OLD)
    made = place.follow()
    place.file("a.txt", NEW)
    made.look(AGENT)
    os.utime(path)  # saved without a change: a comparison sees it before it is reported
    made.look(AGENT)
    made.saved(path)
    assert len(made.ledger.hunks(path)) == 2
    place.file("a.txt", NEW + "mine\n")
    made.look(AGENT)
    made.saved(path)
    assert [hunk.new for hunk in made.ledger.hunks(path)] == [("ONE\n",), ("FIVE\n",)]


@pytest.mark.parametrize("copy", ["a.txt~", "a.txt.~3~", "#a.txt#", ".#a.txt", ".a.txt.swp"])
def test_copies_that_editors_keep_beside_a_file_are_not_an_agents(place: _Place, copy: str) -> None:
    place.file("a.txt", OLD)
    made = place.follow()
    place.file(copy, OLD)
    other = place.file(copy.replace("a.txt", "b.txt"), NEW)  # of no file that is there
    made.look(AGENT)
    assert list(made.ledger.files) == [other]


def test_no_more_files_are_followed_than_the_limit(place: _Place) -> None:
    for number in range(30):
        place.file(f"{number:02}.txt", OLD)
    made = place.follow(maximum_files=10)
    assert made.is_partial
    for number in range(30):
        place.file(f"{number:02}.txt", NEW)
    made.look(AGENT)
    assert len(made.ledger.files) == 10


def test_a_very_long_text_is_one_hunk_without_lines(place: _Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MAXIMUM_CHANGED_CHARACTERS", 10)
    paths = [place.file(name, OLD) for name in ("a.txt", "b.txt")]
    made = place.follow()
    for name in ("a.txt", "b.txt"):
        place.file(name, NEW)
    made.look(AGENT)
    assert [len(made.ledger.hunks(path)) for path in paths] == [2, 1]
    made.undo(ChangeSelection(), {})
    assert (place.text("a.txt"), place.text("b.txt")) == (OLD, OLD)


def test_contents_go_once_nothing_needs_them(place: _Place) -> None:
    image = place.workspace / "image.bin"
    image.write_bytes(b"\0before" * 1000)
    made = place.follow()
    image.write_bytes(b"\0after" * 1000)
    made.look(AGENT)
    assert place.stores[0].stored_bytes == 13_000
    made.keep(ChangeSelection())
    assert place.stores[0].stored_bytes == 6_000


def test_quiet_times_part_turns_and_prompts_do_not(place: _Place) -> None:
    path = place.file("a.txt", OLD)
    made = place.follow()
    for number, pause in enumerate((0.0, 59.0, 61.0)):
        place.now += pause
        place.file("a.txt", OLD + f"{number}\n" * (number + 1))
        made.look(AGENT)
    assert list(made.ledger.turns) == [1, 2]
    made.begin_turn(("Qwen Code",), "Go on")
    place.now += 3600
    place.file("b.txt", "new\n")
    made.look(AGENT)
    assert (made.ledger.turns[3].title, made.ledger.turns[3].agents) == ("Go on", ("Qwen Code",))
    made.end_turn()
    place.file("c.txt", "new\n")
    made.look(AGENT)
    assert made.ledger.paths_of(4) == [str(place.workspace / "c.txt")]
    assert len(_ids(made, path, 2)) == 1


def test_what_ceases_to_be_ignored_was_not_written_now(place: _Place) -> None:
    place.file(".gitignore", "*.log\n")
    place.file("old.log", "there before\n")
    made = place.follow()
    made._looked_at_ns += 60 * 10**9  # type: ignore[reportPrivateUsage]
    place.file(".gitignore", "\n")
    made.look(AGENT)
    assert list(made.ledger.files) == [str(place.workspace / ".gitignore")]


def test_what_the_user_accepted_is_theirs(place: _Place) -> None:
    path = place.file("a.txt", OLD)
    made = place.follow()
    made.accepted(path, NEW.replace("\n", "\r\n"))
    place.file("a.txt", NEW)
    made.look(AGENT)
    assert made.ledger.is_empty
    made.accepted(path, OLD)
    place.now += recorder.ACCEPTED_SECONDS + 1
    place.file("a.txt", OLD)
    made.look(AGENT)
    assert not made.ledger.is_empty


def test_a_folder_in_place_of_a_link_target_is_not_written_through(place: _Place, tmp_path: Path) -> None:
    (place.workspace / "inside").mkdir()
    path = place.file("inside/a.txt", OLD)
    made = place.follow()
    Path(path).unlink()
    made.look(AGENT)
    outside = tmp_path / "outside"
    outside.mkdir()
    (place.workspace / "inside").rmdir()
    (place.workspace / "inside").symlink_to(outside)
    with pytest.raises(ChangeError, match="cannot be written"):
        made.undo(ChangeSelection(path), {})
    assert os.listdir(outside) == []  # noqa: PTH208
