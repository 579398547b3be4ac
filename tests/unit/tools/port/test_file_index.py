"""The index of a tree's files: it lists what a walk yields, also after changes, reads little again, and stays small."""

import shutil
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.files.stamps import UNSETTLED_NANOSECONDS
from isthmus.tools.port import file_index
from isthmus.tools.port.file_index import FileIndex
from isthmus.tools.port.folder_scan import LARGE_FILE_BYTES, ScannedFolder, folder_stamp, scan_folder
from isthmus.tools.port.kept_indexes import MAXIMUM_INDEXES, KeptIndex, KeptIndexes
from isthmus.tools.port.shown_files import ShownFiles
from isthmus.tools.port.workspace import Workspace
from isthmus.tools.search import line_matcher
from support.waiting import eventually
from support.wide_trees import wide_index

Change = tuple[Callable[[Path, str, str], object], str, str]
NAMES = st.sampled_from(["a", "b", "é", "x y", "[1]", "a-b", "#c", "!d"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
LINES = st.sampled_from(["a", "b/", "/a/b", "!a", "*", "!é", "*-b", "\\#c", "[[]1]", "**/a", "a/**", "x*", "{a,b}"])


def write(root: Path, path: str, text: str = "") -> None:
    place = root / path
    if any(above.is_file() for above in place.parents) or place.is_dir():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def remove(root: Path, path: str, _: str) -> None:
    place = root / path
    if place.is_dir():
        shutil.rmtree(place)
    elif place.is_file():
        place.unlink()


def rename(root: Path, path: str, name: str) -> None:
    place = root / path
    if place.exists() and not place.with_name(name).exists():
        place.rename(place.with_name(name))


RULES = st.tuples(
    st.sampled_from(["", "a/", "b/", "a/b/"]),
    st.sampled_from([".gitignore", ".geminiignore"]),
    st.lists(LINES, max_size=3),
)
REPOSITORIES = st.sampled_from(["a/.git/HEAD", ".git/HEAD", ".git/info/exclude"])
CHANGES = st.one_of(
    st.tuples(st.just(write), PATHS, st.just("")),
    st.tuples(st.just(remove), PATHS, st.just("")),
    st.tuples(st.just(rename), PATHS, NAMES),
    RULES.map(lambda rule: (write, rule[0] + rule[1], "\n".join(rule[2]))),
    st.tuples(st.just(write), REPOSITORIES, st.just("b\n")),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(rounds=st.lists(st.lists(CHANGES, max_size=8), min_size=1, max_size=4))
def test_it_lists_what_a_walk_yields_after_any_changes(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[Change]]
) -> None:
    workspace = Workspace(tmp_path_factory.mktemp("tree"))
    index = workspace.kept_index(workspace.root).index
    for changes in rounds:
        for change, path, text in changes:
            change(workspace.root, path, text)
        index.refresh()
        paths = [file.path for file in workspace.walk(workspace.root)]
        assert list(index.paths()) == paths
        assert index.count == len(paths)
        shown = ShownFiles(workspace, workspace.root)
        every = [file for file in workspace.root.rglob("*") if file.is_file()]
        names = [file.relative_to(workspace.root).as_posix() for file in every]
        assert sorted(paths) == sorted(name for name in names if shown.shows(name))


def settle(root: Path) -> None:
    """Wait until what was changed in a tree cannot change again without a difference to be seen."""
    newest = max(path.lstat().st_ctime_ns for path in (root, *root.rglob("*")))
    eventually(lambda: time.time_ns() - newest > UNSETTLED_NANOSECONDS)


def test_only_folders_that_have_changed_are_read_again(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path, f"f{number}/file")
    write(tmp_path, ".gitignore", "none\n")
    settle(tmp_path)
    read: list[str] = []

    def scan(path: str) -> ScannedFolder:
        read.append(Path(path).name)
        return scan_folder(path)

    workspace = Workspace(tmp_path)
    index = FileIndex(workspace.root, "", lambda: workspace.visibility(workspace.root), scan=scan)
    index.refresh()
    assert len(read) == 6
    read.clear()
    index.refresh()
    assert read == []
    write(tmp_path, "f3/new")
    index.refresh()
    assert read == ["f3"]
    assert "f3/new" in list(index.paths())
    (tmp_path / ".gitignore").write_text("new\n", encoding="utf-8")
    index.refresh()
    assert "f3/new" not in list(index.paths())


def test_rules_above_the_workspace_count_and_are_looked_at_again(tmp_path: Path) -> None:
    write(tmp_path, ".git/HEAD")
    write(tmp_path, "top/a.log")
    workspace = Workspace(tmp_path / "top")
    index = workspace.kept_index(workspace.root).index
    index.refresh()
    assert list(index.paths()) == ["a.log"]
    write(tmp_path, ".gitignore", "*.log\n")
    index.refresh()
    assert list(index.paths()) == []


def test_large_files_and_hidden_folders_are_known_by_name(tmp_path: Path) -> None:
    for path in ("big", "small", "v/x", ".git/HEAD"):
        write(tmp_path, path)
    write(tmp_path, ".gitignore", "v/\n")
    with (tmp_path / "big").open("wb") as file:
        file.truncate(LARGE_FILE_BYTES + 1)
    index = Workspace(tmp_path).index_below(tmp_path.resolve())
    index.refresh()
    assert index.find_large()
    top = index.at("")
    assert top is not None
    assert (top.large, top.hidden, top.files()) == (("big",), ("v",), [".gitignore", "big", "small"])
    assert line_matcher.MAXIMUM_FILE_BYTES == LARGE_FILE_BYTES


def test_a_wide_tree_takes_little_memory_and_can_be_asked_while_it_is_listed() -> None:
    tracemalloc.start()
    try:
        index = wide_index(folders=200, files=100)
        index.refresh()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert index.count == 20_000
    assert size / index.count < 50
    seen: list[int] = []
    slow = wide_index(folders=200, files=100, before=lambda: seen.append(slow.count))
    slow.refresh()
    assert seen == sorted(seen)
    assert seen[100] > 0


def test_a_listing_has_a_limit_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_index, "MAXIMUM_FOLDERS", 10)
    index = wide_index(folders=20, files=1)
    index.refresh()
    assert (index.has_ended_early, index.is_listed, index.count) == (True, True, 9)


def test_a_listing_that_was_stopped_begins_anew() -> None:
    index = wide_index(folders=20, files=1)
    index.refresh(lambda: index.count > 3)
    assert (index.is_listed, index.count) == (False, 4)
    index.refresh()
    assert (index.is_listed, index.count) == (True, 20)


def test_who_asks_during_a_refresh_gets_one_that_begins_later(tmp_path: Path) -> None:
    entered, go_on = threading.Event(), threading.Event()
    scans: list[str] = []

    def scan(path: str) -> ScannedFolder:
        scans.append(path)
        entered.set()
        assert go_on.wait(60)
        return ScannedFolder((1, 1), ["a"], [])

    workspace = Workspace(tmp_path)
    kept = KeptIndex(FileIndex(tmp_path, "", lambda: workspace.visibility(tmp_path), scan=scan, stamp=lambda _: None))
    first = kept.refreshed()
    assert entered.wait(60)
    second = kept.refreshed()
    assert second is kept.refreshed()
    assert second is not first
    go_on.set()
    second.result(60)
    assert first.done()
    assert len(scans) == 2
    assert kept.is_newer_than(3_600)


def test_only_a_few_indexes_are_kept(tmp_path: Path) -> None:
    indexes = KeptIndexes()
    first = Workspace(tmp_path, indexes=indexes).kept_index(tmp_path.resolve())
    assert Workspace(tmp_path, indexes=indexes).kept_index(tmp_path.resolve()) is first
    for number in range(MAXIMUM_INDEXES):
        (tmp_path / str(number)).mkdir()
        Workspace(tmp_path / str(number), indexes=indexes).kept_index(tmp_path.resolve() / str(number))
    assert Workspace(tmp_path, indexes=indexes).kept_index(tmp_path.resolve()) is not first


def test_a_link_to_a_folder_has_no_stamp(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    assert folder_stamp(str(tmp_path / "a")) is not None
    assert folder_stamp(str(tmp_path / "link")) is None
