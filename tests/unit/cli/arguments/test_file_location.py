"""Places in files in the form that users type."""

from pathlib import Path

import pytest

from isthmus.cli.arguments.file_location import locate, parse_place, parse_range
from isthmus.ide.editor import Position, Range


@pytest.mark.parametrize(
    ("text", "file", "numbers"),
    [
        ("a.py", "a.py", (None, None, None, None)),
        ("a.py:3", "a.py", (3, None, None, None)),
        ("a.py:3:4", "a.py", (3, 4, None, None)),
        ("a.py:3-5", "a.py", (3, None, 5, None)),
        ("a.py:3:4-5:6", "a.py", (3, 4, 5, 6)),
        ("b:c.py:3-5", "b:c.py", (3, None, 5, None)),
        ("a.py:", "a.py:", (None, None, None, None)),
        ("a.py:x", "a.py:x", (None, None, None, None)),
        (":3", ":3", (None, None, None, None)),
        ("x" * 5000, "x" * 5000, (None, None, None, None)),
    ],
)
def test_a_range_behind_a_file(
    text: str, file: str, numbers: tuple[int | None, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_range(text) == (str(tmp_path / file), *numbers)


def test_a_place_is_zero_based_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    at = Position(2, 3)
    assert parse_place("sub/../a.py:3:4") == (str(tmp_path / "a.py"), Range(at, at))
    assert parse_place("a.py") == (str(tmp_path / "a.py"), None)
    first = Position(0, 0)
    assert parse_place("a.py:0") == (str(tmp_path / "a.py"), Range(first, first))


def test_a_file_that_is_not_in_the_current_folder_is_looked_for_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, workspace = tmp_path / "here", tmp_path / "workspace"
    for folder in (here, workspace):
        folder.mkdir()
        (folder / "both.py").touch()
    (workspace / "one.py:3").touch()
    monkeypatch.chdir(here)
    assert locate("both.py", (str(workspace),)) == str(here / "both.py")
    assert locate("one.py:3", (str(workspace),)) == str(workspace / "one.py:3")
    assert parse_range("one.py:3", ("../workspace",))[:2] == (str(workspace / "one.py:3"), None)
    assert locate("new.py", (str(workspace),)) == str(workspace / "new.py")
    assert locate("new.py") == str(here / "new.py")
    assert locate("/absolute.py", (str(workspace),)) == "/absolute.py"


def test_a_file_whose_name_looks_like_a_place_is_meant_when_it_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py:3").touch()
    assert parse_place("a.py:3") == (str(tmp_path / "a.py:3"), None)
    assert parse_range("a.py:3")[1] is None
