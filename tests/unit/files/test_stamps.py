"""Stamps say whether what was read is still current, also of a file that may have changed in the same moment."""

import os
from pathlib import Path

import pytest

from isthmus.files.stamps import UNSETTLED_NANOSECONDS, Stamp, Stamps, stamp_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "AGENTS.md"
    path.write_text("one", encoding="utf-8")
    return path


def read_later(path: Path, was: Stamp) -> Stamps:
    """Return the stamps of a reading that began long after the file's last change."""
    status = path.stat()
    return Stamps(((path, was),), max(status.st_mtime_ns, status.st_ctime_ns) + UNSETTLED_NANOSECONDS + 1)


def test_a_file_that_is_as_it_was_is_current(path: Path) -> None:
    assert read_later(path, stamp_of(path)).are_current()


def test_a_file_that_was_written_replaced_or_removed_since_is_not_current(path: Path) -> None:
    was = stamp_of(path)
    path.write_text("two", encoding="utf-8")
    os.utime(path, ns=(1, 1))
    assert not read_later(path, was).are_current()
    was = stamp_of(path)
    (path.parent / "new").write_text("two", encoding="utf-8")
    os.utime(path.parent / "new", ns=(1, 1))
    (path.parent / "new").rename(path)
    assert not read_later(path, was).are_current()
    stamps = read_later(path, stamp_of(path))
    path.unlink()
    assert not stamps.are_current()


def test_a_file_that_came_since_makes_its_absence_old(path: Path) -> None:
    missing = path.parent / "GEMINI.md"
    stamps = Stamps(((missing, stamp_of(missing)),), 10**18)
    assert stamps.are_current()
    missing.write_text("here", encoding="utf-8")
    assert not stamps.are_current()


def test_a_file_that_changed_just_before_it_was_read_is_read_again(path: Path) -> None:
    """The clock of file systems is coarse: a second change in that moment would leave the same times."""
    newest = max(path.stat().st_mtime_ns, path.stat().st_ctime_ns)
    assert not Stamps(((path, stamp_of(path)),), newest + UNSETTLED_NANOSECONDS).are_current()
    assert Stamps(((path, stamp_of(path)),), newest + UNSETTLED_NANOSECONDS + 1).are_current()
