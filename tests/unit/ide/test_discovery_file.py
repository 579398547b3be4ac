"""The files of a folder that discovery reads: other users may write there, and editors crash."""

import os
import re
from pathlib import Path

import pytest

from isthmus.ide import discovery_file
from isthmus.ide.discovery_file import MAXIMUM_FILES, is_ours, named_files

NAME = re.compile(r"\d{1,5}\.lock")


def test_only_files_of_the_right_name_are_looked_at_and_no_folder_is_no_error(tmp_path: Path) -> None:
    for name in ("2.lock", "10.lock", "x.lock", "1.lock.tmp", "-1.lock"):
        (tmp_path / name).touch()
    (tmp_path / "3.lock").symlink_to(tmp_path / "nowhere")
    assert [path.name for path in named_files(tmp_path, NAME)] == ["10.lock", "2.lock", "3.lock"]
    assert list(named_files(tmp_path / "missing", NAME)) == []
    assert list(named_files(tmp_path / "2.lock", NAME)) == []


def test_files_of_others_never_take_the_place_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(MAXIMUM_FILES + 5):
        (tmp_path / f"{number}.lock").touch()
    assert len(list(named_files(tmp_path, NAME))) == MAXIMUM_FILES

    def is_the_last(entry: "os.DirEntry[str]") -> bool:
        return entry.name == "99.lock"

    monkeypatch.setattr(discovery_file, "is_ours", is_the_last)
    found = [path.name for path in named_files(tmp_path, NAME)]
    assert (found[0], len(found)) == ("99.lock", MAXIMUM_FILES)


def test_a_file_that_vanishes_while_one_looks_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "1.lock").touch()
    with os.scandir(tmp_path) as entries:
        (entry,) = entries
    (tmp_path / "1.lock").unlink()
    assert not is_ours(entry)
