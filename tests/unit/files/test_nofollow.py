import contextlib
import errno
import os
from pathlib import Path

import pytest

from isthmus.files.atomic import read_regular, write_if_unchanged
from isthmus.files.nofollow import folder_of, make_folders, open_file

OPEN = Path("/proc/self/fd")


def read(path: Path) -> bytes:
    with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
        return file.read()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make ``inside/deep/file`` and ``outside/deep/file``."""
    for name in ("inside", "outside"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").write_bytes(name.encode())
    return tmp_path.resolve()


def test_a_file_is_opened_where_no_link_is_on_its_way(folder: Path) -> None:
    assert read(folder / "inside" / "deep" / "file") == b"inside"
    with pytest.raises(FileNotFoundError):
        open_file(folder / "inside" / "none" / "file", os.O_RDONLY)
    with pytest.raises(NotADirectoryError):
        open_file(folder / "inside" / "deep" / "file" / "x", os.O_RDONLY)


@pytest.mark.parametrize("place", ["inside", "inside/deep", "inside/deep/file"])
def test_a_link_that_takes_the_place_of_a_part_of_the_path_is_not_followed(folder: Path, place: str) -> None:
    path = folder / "inside" / "deep" / "file"
    (folder / place).rename(folder / "before")
    (folder / place).symlink_to(folder / place.replace("inside", "outside"))
    assert path.read_bytes() == b"outside"  # as any other program would
    for attempt in (
        lambda: read_regular(path, 100, through_links=False),
        lambda: write_if_unchanged(path, b"mine", b"outside", through_links=False),
        lambda: write_if_unchanged(path, b"mine", None, through_links=False),
    ):
        with pytest.raises(OSError) as caught:  # noqa: PT011 - its number is what counts
            attempt()
        assert caught.value.errno == errno.ELOOP
    assert (folder / "outside" / "deep" / "file").read_bytes() == b"outside"
    assert [each.name for each in (folder / "outside" / "deep").iterdir()] == ["file"]


def test_a_link_that_comes_while_a_file_is_written_leads_it_nowhere_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sync = folder / "inside" / "deep" / "file", os.fsync

    def swap(descriptor: int) -> None:
        if not (folder / "before").exists():
            (folder / "inside" / "deep").rename(folder / "before")
            (folder / "inside" / "deep").symlink_to(folder / "outside" / "deep")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", swap)
    write_if_unchanged(path, b"mine", b"inside", through_links=False)
    assert (folder / "before" / "file").read_bytes() == b"mine"
    assert (folder / "outside" / "deep" / "file").read_bytes() == b"outside"


def test_folders_are_made_below_real_ones_alone(folder: Path) -> None:
    make_folders(folder / "inside" / "a" / "b")
    make_folders(folder / "inside" / "a" / "b")
    assert (folder / "inside" / "a" / "b").is_dir()
    (folder / "inside" / "link").symlink_to(folder / "outside")
    with pytest.raises(OSError, match="symbolic link"):
        make_folders(folder / "inside" / "link" / "new")
    assert not (folder / "outside" / "new").exists()
    with pytest.raises(NotADirectoryError):
        make_folders(folder / "inside" / "deep" / "file" / "x")


def test_a_path_that_names_no_file_is_refused() -> None:
    for path in (Path("relative/file"), Path("/")):
        with pytest.raises(OSError, match="absolute path of a file"), folder_of(path):
            pass


@pytest.mark.skipif(not OPEN.is_dir(), reason="no list of the open descriptors on this system")
def test_no_descriptor_is_left_open(folder: Path) -> None:
    before = len(list(OPEN.iterdir()))
    for name in ("inside/deep/file", "inside/none/x", "inside/deep/file/x"):
        with contextlib.suppress(OSError):
            read(folder / name)
    assert len(list(OPEN.iterdir())) == before
