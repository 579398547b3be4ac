"""The programs that an agent is told of: found as a shell finds them, and a change is seen at the next look."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from isthmus.files import stamps
from isthmus.files.stamps import Stamp
from isthmus.parts import program_lookup
from isthmus.parts.program_lookup import TRUSTED_SECONDS, ProgramLookup


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Make a folder of programs that has not changed for long."""

    def make(name: str, *programs: str) -> Path:
        made = tmp_path / name
        made.mkdir()
        for program in programs:
            (made / program).touch(0o755)
        os.utime(made, (1, 1))
        return made

    return make


def lookup(*folders: Path) -> ProgramLookup:
    return ProgramLookup(("bash", "git", "rg"), {"PATH": os.pathsep.join(map(str, folders))})


def undated(_: Path) -> Stamp:
    """Return the stamp of everything on a file system that has no times."""
    return None


def test_programs_are_found_in_the_first_folder_that_has_them(folder: Callable[..., Path]) -> None:
    first, second = folder("first", "git"), folder("second", "git", "rg")
    assert dict(lookup(first, second).found()) == {"git": str(first / "git"), "rg": str(second / "rg")}


def test_a_program_that_comes_or_goes_is_seen_at_the_next_look(folder: Callable[..., Path]) -> None:
    first = folder("first", "git")
    looking = lookup(first, first.with_name("later"))
    assert set(looking.found()) == {"git"}
    (first / "rg").touch(0o755)
    assert set(looking.found()) == {"git", "rg"}
    (first / "git").unlink()
    assert set(looking.found()) == {"rg"}
    folder("later", "bash")
    assert set(looking.found()) == {"bash", "rg"}


def test_a_change_outside_the_folder_is_seen_at_the_next_look(folder: Callable[..., Path], tmp_path: Path) -> None:
    first = folder("first", "git")
    (first / "rg").symlink_to(tmp_path / "rg")
    looking = lookup(first)
    assert set(looking.found()) == {"git"}
    (tmp_path / "rg").touch(0o755)
    (first / "git").chmod(0o644)
    assert set(looking.found()) == {"rg"}


def test_a_folder_of_that_name_is_not_a_program(folder: Callable[..., Path]) -> None:
    first = folder("first")
    (first / "git").mkdir()
    assert not lookup(first).found()


def test_only_a_changed_folder_is_looked_through(folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    exists = os.path.lexists

    def noted(path: str) -> bool:
        looked.append(os.fspath(path))
        return exists(path)

    first, second = folder("first", "git"), folder("second")
    monkeypatch.setattr(os.path, "lexists", noted)
    monkeypatch.setattr(stamps, "UNSETTLED_NANOSECONDS", -(10**9))
    looking = lookup(first, second)
    looking.found()
    looked.clear()
    (second / "rg").touch(0o755)
    assert set(looking.found()) == {"git", "rg"}
    assert looked == [str(second / name) for name in ("bash", "git", "rg")]


def test_after_a_minute_a_folder_is_looked_through_again(
    folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that does not date folders shows no change of them."""
    now = 0.0
    first = folder("first")
    monkeypatch.setattr(stamps, "UNSETTLED_NANOSECONDS", -(10**9))
    for module in (program_lookup, stamps):
        monkeypatch.setattr(module, "stamp_of", undated)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    looking = lookup(first)
    looking.found()
    (first / "git").touch(0o755)
    assert not looking.found()
    now = TRUSTED_SECONDS
    assert set(looking.found()) == {"git"}


def test_without_a_path_nothing_is_found(folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder("first", "git")))
    assert not ProgramLookup(("git",), {"PATH": ""}).found()
    assert set(ProgramLookup(("git",), {}).found()) == {"git"}
