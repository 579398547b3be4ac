import sys
import threading
from pathlib import Path

import pytest

from isthmus.sandbox.bubblewrap import Bubblewrap
from isthmus.sandbox.confinement import Confinement
from isthmus.sandbox.finding import SandboxFinder
from isthmus.sandbox.mounts import PrivatePlaces
from isthmus.sandbox.support import NoSandbox, find_support
from support.programs import bubblewrap


def pretended(folder: Path, script: str) -> dict[str, str]:
    """Return a PATH with a program named bwrap."""
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": str(folder)}


def test_the_one_of_this_machine_works() -> None:
    found = find_support({"PATH": str(bubblewrap())})
    assert isinstance(found, Bubblewrap)
    assert found.version >= (0, 4, 0)
    assert str(found).startswith("bubblewrap 0.")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo bubblewrap 0.3.9", ("is version 0.3.9, expected 0.4.0 or newer", "apt install bubblewrap")),
        ("echo something else", ("printed an unknown format: something else", "apt install bubblewrap")),
        (
            '[ "$1" = --version ] && echo bubblewrap 0.8.0 || { echo "bwrap: No permissions to create new namespace"'
            " >&2; exit 1; }",
            ("does not work here: bwrap: No permissions to create new namespace", "unprivileged user namespaces"),
        ),
        ('[ "$1" = --version ] && echo bubblewrap 0.8.0 || exit 7', ("does not work here: exit code 7",)),
    ],
)
def test_one_that_does_not_work_says_why_and_what_to_do(tmp_path: Path, script: str, said: tuple[str, ...]) -> None:
    found = find_support(pretended(tmp_path, script))
    assert isinstance(found, NoSandbox)
    for part in said:
        assert part in found.reason


def test_a_missing_one_says_what_to_install(tmp_path: Path) -> None:
    found = find_support({"PATH": str(tmp_path)})
    assert isinstance(found, NoSandbox)
    assert "bubblewrap (bwrap) is not on PATH; install it (Debian, Ubuntu: apt install bubblewrap" in found.reason


def test_one_that_cannot_be_run_is_none(tmp_path: Path) -> None:
    environment = pretended(tmp_path, "")
    (tmp_path / "bwrap").write_bytes(b"\x7fELF not really")
    found = find_support(environment)
    assert isinstance(found, NoSandbox)
    assert "cannot be run" in found.reason


def test_one_that_hangs_is_given_up(tmp_path: Path) -> None:
    environment = {**pretended(tmp_path, "exec sleep 60"), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    found = find_support(environment, seconds=0.1)
    assert isinstance(found, NoSandbox)
    assert "cannot be run" in found.reason


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_than_on_linux_there_is_none(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert find_support({"PATH": "/usr/bin"}) == NoSandbox("the sandbox is bubblewrap, which exists on Linux only")


def test_it_is_looked_for_once_however_many_want_it(tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    environment = pretended(tmp_path, f'echo x >> {tries}; exec {bubblewrap()}/bwrap "$@"')
    finder = SandboxFinder(PrivatePlaces(tmp_path), {**environment, "PATH": f"{tmp_path}:/usr/bin:/bin"})
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(finder.find())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4
    assert all(isinstance(one, Confinement) for one in found)
    assert tries.read_text().count("x") == 2  # its version, and a trial
