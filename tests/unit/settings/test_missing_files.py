"""Tests of which settings files count as missing."""

from pathlib import Path

from isthmus.settings.settings_file import is_missing


def test_only_a_file_that_certainly_does_not_exist_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert is_missing(tmp_path / "nothing")
    assert is_missing(tmp_path / "file" / "below")
    assert not is_missing(tmp_path / "file")
    assert not is_missing(tmp_path / "link")
    assert not is_missing(tmp_path / "loop" / "below")
    assert not is_missing(tmp_path / ("x" * 300))
