"""The folder in memory for the files of a run of tests."""

import os
import subprocess
import sys
from pathlib import Path

from memory_folder import PREFIX, memory_folder


def test_a_folder_is_made_and_removed_with_what_is_in_it(tmp_path: Path) -> None:
    with memory_folder(tmp_path, 1) as folder:
        assert folder is not None
        (folder / "file").write_text("text", encoding="utf-8")
        assert list(tmp_path.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == []


def test_there_is_none_where_there_is_not_enough_room(tmp_path: Path) -> None:
    with memory_folder(tmp_path, 2**62) as folder:
        assert folder is None
    with memory_folder(tmp_path / "missing", 1) as folder:
        assert folder is None


def test_folders_of_killed_runs_are_removed_and_others_stay(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    (tmp_path / f"{PREFIX}{ended.pid}-a" / "inner").mkdir(parents=True)
    kept = [tmp_path / f"{PREFIX}{os.getppid()}-b", tmp_path / "of-others"]
    for folder in kept:
        folder.mkdir()
    with memory_folder(tmp_path, 1) as made:
        assert made is not None
        assert sorted(tmp_path.iterdir()) == sorted([*kept, made])
