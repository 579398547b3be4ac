import os
from pathlib import Path

import pytest

from isthmus.files.atomic import FileChangedError, exclusive, read_regular, write_atomic, write_if_unchanged


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_content_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", b"content", mode=0o600)
    assert (tmp_path / "a").read_bytes() == b"content"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["a"]


def test_the_mode_of_a_file_stays(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_bytes(b"old")
    (tmp_path / "run.sh").chmod(0o751)
    write_atomic(tmp_path / "run.sh", b"new")
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o751


def test_a_symbolic_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_file_with_the_longest_possible_name_is_written(tmp_path: Path) -> None:
    write_atomic(tmp_path / ("n" * 255), b"new")
    assert names(tmp_path) == ["n" * 255]


def test_a_read_only_file_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        write_atomic(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_failed_write_leaves_the_old_file_and_no_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write_atomic(tmp_path, b"new")


@pytest.mark.parametrize(
    ("current", "expected", "happened"),
    [(b"other", b"old", "changed"), (None, b"old", "was removed"), (b"other", None, "appeared")],
)
def test_a_file_that_somebody_else_touched_is_left_alone(
    tmp_path: Path, current: bytes | None, expected: bytes | None, happened: str
) -> None:
    path = tmp_path / "a"
    if current is not None:
        path.write_bytes(current)
    with pytest.raises(FileChangedError, match=happened):
        write_if_unchanged(path, b"new", expected)
    assert (path.read_bytes() if path.exists() else None) == current
    assert len(names(tmp_path)) == (current is not None)


@pytest.mark.parametrize("expected", [b"old", None])
def test_a_file_that_is_as_expected_is_written(tmp_path: Path, expected: bytes | None) -> None:
    path = tmp_path / "a"
    if expected is not None:
        path.write_bytes(expected)
    write_if_unchanged(path, b"new", expected)
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


def test_a_file_that_appears_after_the_check_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    link = os.link

    def appear_first(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        path.write_bytes(b"theirs")
        link(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "link", appear_first)
    with pytest.raises(FileChangedError, match="appeared"):
        write_if_unchanged(path, b"ours", None)
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["a"]


def test_a_regular_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1234")
    assert read_regular(tmp_path / "a", 4) == b"1234"
    with pytest.raises(OSError, match="larger than 3 bytes"):
        read_regular(tmp_path / "a", 3)


def test_what_has_no_end_or_would_be_waited_for_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            read_regular(path, 4)
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path, 4)


def test_a_link_that_somebody_put_in_the_way_is_replaced_when_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    for target in ("victim", "missing"):
        (tmp_path / "secret").symlink_to(target)
        write_atomic(tmp_path / "secret", b"token", mode=0o600, through_links=False)
        assert (tmp_path / "victim").read_bytes() == b"mine"
        assert (tmp_path / "secret").read_bytes() == b"token"
        assert not (tmp_path / "secret").is_symlink()
        (tmp_path / "secret").unlink()
    assert names(tmp_path) == ["victim"]


def test_who_waits_too_long_for_a_lock_is_told_and_the_next_one_gets_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with exclusive(lock), pytest.raises(TimeoutError, match="another process"), exclusive(lock, seconds=0.05):
        pass
    with exclusive(lock, seconds=0.05):
        pass


def test_a_folder_in_place_of_a_file_is_an_error_and_leaks_no_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counts, and opens as little as can be
    for _ in range(3):
        with pytest.raises(IsADirectoryError):
            read_regular(tmp_path, 100)
        with pytest.raises(IsADirectoryError):
            write_if_unchanged(tmp_path, b"new", b"old")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser may give a file away")
def test_the_owner_of_a_file_stays_that_gets_another_content_and_mode(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    os.chown(tmp_path / "a", 65534, 65534)
    write_if_unchanged(tmp_path / "a", b"new", b"old", mode=0o640)
    status = (tmp_path / "a").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (65534, 65534, 0o640)


def test_no_more_is_read_than_tells_that_a_file_has_changed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    os.truncate(tmp_path / "a", 1 << 43)  # has more bytes than any memory
    with pytest.raises(FileChangedError):
        write_if_unchanged(tmp_path / "a", b"new", b"old")
