import os
import subprocess
import sys
from pathlib import Path

import pytest

from run_tests import __file__ as SCRIPT

STEADY = "def test_steady():\n    pass\n"
BROKEN = "def test_broken():\n    assert 'always' == 'wrong'\n"


def fails_once(mark: Path, name: str = "test_once") -> str:
    return (
        "import pathlib\n"
        f"def {name}():\n"
        f"    mark = pathlib.Path({str(mark)!r})\n"
        "    there = mark.exists()\n"
        "    mark.touch()\n"
        "    assert there, 'the first failure'\n"
    )


def run(folder: Path, *options: str, **files: str) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        room, _, test = name.partition("__")
        (folder / "tests" / room).mkdir(parents=True, exist_ok=True)
        (folder / "tests" / room / f"test_{test}.py").write_text(text, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n", encoding="utf-8")
    command = [sys.executable, SCRIPT, "-p", "no:cacheprovider", *options, "tests"]
    variables = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100, env=variables)


@pytest.mark.slow
@pytest.mark.parametrize(("room", "options"), [("peers", ()), ("chaos", ("--processes", "2"))])
def test_a_test_with_real_programs_that_passes_alone_is_named_as_unstable(
    tmp_path: Path, room: str, options: tuple[str, ...]
) -> None:
    ended = run(tmp_path, *options, **{f"{room}__once": fails_once(tmp_path / "mark"), "unit__steady": STEADY})
    assert ended.returncode == 0, ended.stdout
    assert f"unstable: tests/{room}/test_once.py::test_once failed in the first run and passed alone" in ended.stdout
    assert "AssertionError: the first failure" in ended.stdout.rpartition("unstable:")[0]


@pytest.mark.slow
@pytest.mark.parametrize("room", ["unit", "contract", "fuzz"])
def test_a_test_without_real_programs_has_one_try(tmp_path: Path, room: str) -> None:
    ended = run(tmp_path, **{f"{room}__once": fails_once(tmp_path / "mark"), "peers__steady": STEADY})
    assert ended.returncode == 1
    assert "unstable" not in ended.stdout


@pytest.mark.slow
def test_a_failing_unit_test_takes_the_second_try_from_the_others(tmp_path: Path) -> None:
    ended = run(tmp_path, unit__broken=BROKEN, peers__once=fails_once(tmp_path / "mark"))
    assert ended.returncode == 1
    assert "run once more" not in ended.stdout


@pytest.mark.slow
def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    ended = run(tmp_path, peers__broken=BROKEN, unit__steady=STEADY)
    assert ended.returncode == 1
    assert "run once more, alone: tests/peers/test_broken.py::test_broken" in ended.stdout


@pytest.mark.slow
def test_a_fourth_unstable_test_fails_the_run(tmp_path: Path) -> None:
    many = "".join(fails_once(tmp_path / str(number), f"test_{number}") for number in range(4))
    ended = run(tmp_path, peers__many=many)
    assert ended.returncode == 1
    assert "run once more" not in ended.stdout


@pytest.mark.slow
def test_a_module_that_cannot_be_imported_takes_the_second_try_from_the_others(tmp_path: Path) -> None:
    files = {"peers__unreadable": "import nothing_of_this_name\n", "peers__once": fails_once(tmp_path / "mark")}
    ended = run(tmp_path, "--continue-on-collection-errors", **files)
    assert ended.returncode == 1
    assert "run once more" not in ended.stdout


MARKED = """
import pytest

@pytest.mark.requirement({first!r})
def test_in_every_run(): pass

@pytest.mark.extended
@pytest.mark.requirement("GEM-001", "GEM-002")
def test_one_more_peer(): pass
"""
LEAVING_OUT = ("-m", "not extended")


@pytest.mark.slow
def test_a_requirement_is_not_shown_by_extended_tests_alone(tmp_path: Path) -> None:
    refused = run(tmp_path, *LEAVING_OUT, peers__marked=MARKED.format(first="GEM-001"))
    assert refused.returncode == 4
    assert "GEM-002 (tests/peers/test_marked.py::test_one_more_peer): shown by extended tests alone" in refused.stderr
    assert "GEM-001" not in refused.stderr
    assert run(tmp_path, *LEAVING_OUT, unit__other=MARKED.format(first="GEM-002")).returncode == 0
    assert run(tmp_path, "-m", "extended").returncode == 0
