"""Applying what a tried command changed: to the folder as it was, through no link, all or nothing at first."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.tools.shell.trials.applying import ApplyError, apply_changes
from isthmus.tools.shell.trials.copying import state_in
from isthmus.tools.shell.trials.effect import EntryState, Kind, TriedChange


def now(root: Path, path: str) -> EntryState | None:
    return state_in(root, path, 1000)[0]


def file(content: bytes, mode: int = 0o644) -> EntryState:
    return EntryState(Kind.FILE, mode, "unused", len(content))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("src/a.py", "src/b.py", "outside/a.py"):
        path = tmp_path / ("" if name.startswith("outside") else "root") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"old\n")
    return tmp_path / "root"


def test_files_folders_links_and_modes_are_made_changed_and_removed(root: Path) -> None:
    (root / "link").symlink_to("src/a.py")
    os.link(root / "src" / "a.py", root.parent / "same")
    changes = [
        TriedChange("src/a.py", now(root, "src/a.py"), file(b"new\n")),
        TriedChange("src/b.py", now(root, "src/b.py"), None),
        TriedChange("d", None, EntryState(Kind.FOLDER, 0o755)),
        TriedChange("d/e", None, EntryState(Kind.FOLDER, 0o755)),
        TriedChange("d/e/f", None, file(b"x", 0o755)),
        TriedChange("link", now(root, "link"), EntryState(Kind.LINK, 0, "d/e/f")),
    ]
    apply_changes(root, changes, {"src/a.py": b"new\n", "d/e/f": b"x"})
    assert (root / "src" / "a.py").read_bytes() == b"new\n"
    assert (root.parent / "same").read_bytes() == b"old\n"
    assert not (root / "src" / "b.py").exists()
    assert ((root / "d/e/f").read_bytes(), (root / "d/e/f").stat().st_mode & 0o777) == (b"x", 0o755)
    assert os.readlink(root / "link") == "d/e/f"  # noqa: PTH115 - as it is written
    before = now(root, "d/e/f")
    assert before is not None
    apply_changes(root, [TriedChange("d/e/f", before, replace(before, mode=0o600))], {})
    assert (root / "d/e/f").stat().st_mode & 0o777 == 0o600
    gone = [TriedChange(path, now(root, path), None) for path in ("d", "d/e", "d/e/f", "link")]
    apply_changes(root, gone, {})
    assert sorted(path.name for path in root.iterdir()) == ["src"]


def test_a_folder_that_became_a_link_is_not_written_through(root: Path) -> None:
    changes = [TriedChange("src/a.py", now(root, "src/a.py"), file(b"new\n")), TriedChange("src/c", None, file(b"c"))]
    (root / "src").rename(root / "former")
    (root / "src").symlink_to(root.parent / "outside")
    with pytest.raises(ApplyError, match=r"src/a\.py, src/c changed since .*; nothing was applied"):
        apply_changes(root, changes, {"src/a.py": b"new\n", "src/c": b"c"})
    assert [path.name for path in (root.parent / "outside").iterdir()] == ["a.py"]
    assert (root.parent / "outside" / "a.py").read_bytes() == b"old\n"


@pytest.mark.parametrize("change", ["content", "mode", "removed", "link", "folder"])
def test_one_file_that_is_not_as_it_was_stops_all_of_them(root: Path, change: str) -> None:
    changes = [
        TriedChange("src/a.py", now(root, "src/a.py"), None),
        TriedChange("src/b.py", now(root, "src/b.py"), None),
    ]
    path = root / "src" / "b.py"
    if change == "content":
        path.write_bytes(b"of the user\n")
    elif change == "mode":
        path.chmod(0o600)
    else:
        path.unlink()
        if change == "link":
            path.symlink_to("a.py")
        elif change == "folder":
            path.mkdir()
    with pytest.raises(ApplyError, match=r"src/b\.py changed since the command was tried; nothing was applied"):
        apply_changes(root, changes, {})
    assert (root / "src" / "a.py").exists()


def test_a_failure_in_the_middle_names_what_was_applied(root: Path) -> None:
    changes = [TriedChange("a", None, file(b"a")), TriedChange("missing/b", None, file(b"b"))]
    with pytest.raises(ApplyError, match=r"missing/b could not be changed: .*; applied before: a"):
        apply_changes(root, changes, {"a": b"a", "missing/b": b"b"})
