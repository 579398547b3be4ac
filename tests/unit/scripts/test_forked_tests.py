import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from run_tests import __file__ as SCRIPT
from support.waiting import eventually

pytestmark = pytest.mark.slow

SHARED = """
import os, pathlib, pytest

@pytest.fixture(scope="module")
def shared():
    yield os.getpid()
    with open("log", "a") as log:
        print("fixture ended", os.getpid(), file=log)

@pytest.mark.parametrize("number", range(3))
def test_shared(shared, number):
    assert shared == os.getpid()
    with open("log", "a") as log:
        print("test", pathlib.Path(__file__).stem, number, os.getpid(), file=log)
"""
PRINTING = """
import os, sys
def bound(stream=sys.stderr):
    print("what {name} has bound", file=stream)
def test_printing():
    bound()
    print("what {name} has printed")
    os.write(1, b"what {name} has written")
    assert not "wrong"
"""
ENDING = """
import os
def test_before(): pass
def test_ending(): os._exit(7)
def test_after(): open("after", "w").close()
"""
WAITING = """
import os, pathlib, pytest, time

@pytest.fixture(scope="session")
def closed():
    yield
    pathlib.Path("closed").touch()

def test_waiting(closed):
    pathlib.Path("begun").write_text(f"waits {os.getpid()}\\n")
    os.rename("begun", "log")
    time.sleep(60)
"""
WARNING = """
import warnings
class Special(UserWarning):
    def __init__(self, one, two): super().__init__(one + two)
def test_warning():
    warnings.warn("a plain one", UserWarning)
    warnings.warn(Special("of two ", "words"))
"""
MEETING = """
import os, pathlib, time
def test_meeting(tmp_path_factory):
    with open("log", "a") as log:
        print("met", os.getpid(), tmp_path_factory.getbasetemp(), file=log)
    deadline = time.monotonic() + 60
    while pathlib.Path("log").read_text().count("met ") < 2:
        assert time.monotonic() < deadline, "the other file does not run at the same time"
        time.sleep(0.01)
"""


def run(folder: Path, *options: str, **files: str) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n", encoding="utf-8")
    command = [sys.executable, SCRIPT, "-p", "no:cacheprovider", "--processes", "2", *options, "."]
    variables = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100, env=variables)


def log_of(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / "log").read_text(encoding="utf-8").splitlines()]


def test_each_test_runs_once_and_a_file_in_one_process(tmp_path: Path) -> None:
    ended = run(tmp_path, **{f"file{number}": SHARED for number in range(5)})
    assert ended.returncode == 0, ended.stdout
    assert "15 passed" in ended.stdout
    tests = [words[1:3] for words in log_of(tmp_path) if words[0] == "test"]
    assert sorted(tests) == [[f"test_file{file}", str(number)] for file in range(5) for number in range(3)]
    assert len({words[-1] for words in log_of(tmp_path)}) <= 2
    assert len([words for words in log_of(tmp_path) if words[0] == "fixture"]) == 5


def test_a_failure_shows_the_output_of_its_own_test_alone(tmp_path: Path) -> None:
    names = ("red", "green", "blue")
    ended = run(tmp_path, **{name: PRINTING.replace("{name}", name) for name in names})
    assert ended.returncode == 1
    failures = re.split(r"_+ test_printing _+\n", ended.stdout.rpartition("= short test summary")[0])[1:]
    assert len(failures) == 3
    for failure in failures:
        assert len(set(re.findall(r"what (\w+) has (?:printed|written|bound)\n", failure))) == 1
        assert set(re.findall(r"what \w+ has (printed|written|bound)", failure)) == {"printed", "written", "bound"}


def test_a_process_that_ends_fails_its_test_and_no_other_one(tmp_path: Path) -> None:
    ended = run(tmp_path, ending=ENDING, shared=SHARED)
    assert ended.returncode == 1
    assert "\nThe process ended in this test, with exit code 7.\n" in ended.stdout
    assert "FAILED test_ending.py::test_ending - " in ended.stdout
    assert "1 failed, 5 passed" in ended.stdout
    assert (tmp_path / "after").exists()


def test_warnings_of_all_processes_are_shown(tmp_path: Path) -> None:
    ended = run(tmp_path, warning=WARNING, shared=SHARED)
    assert "UserWarning: a plain one" in ended.stdout
    assert "of two words" in ended.stdout


def test_the_run_stops_at_the_first_failure_where_that_is_asked(tmp_path: Path) -> None:
    failing = "def test_failing(): assert not 'wrong'\n" + "".join(f"def test_{n}(): pass\n" for n in range(500))
    ended = run(tmp_path, "-x", failing=failing, shared=SHARED)
    assert ended.returncode == 1
    assert "stopping after 1 failures" in ended.stdout
    assert "500 passed" not in ended.stdout


def test_two_files_run_at_the_same_time_each_in_folders_of_its_own(tmp_path: Path) -> None:
    ended = run(tmp_path, one=MEETING, two=MEETING)
    assert ended.returncode == 0, ended.stdout
    (_, one, folder_one), (_, two, folder_two) = log_of(tmp_path)
    assert one != two
    assert folder_one != folder_two


def test_an_interrupted_run_closes_its_fixtures_and_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "test_waiting.py").write_text(WAITING, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, SCRIPT, "-p", "no:cacheprovider", "--processes", "2", "."]
    variables = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=variables) as program:
        eventually((tmp_path / "log").exists, what="the test runs")
        program.send_signal(signal.SIGINT)
        output, _ = program.communicate(timeout=60)
    assert program.returncode == pytest.ExitCode.INTERRUPTED, output
    ((_, pid),) = log_of(tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
    assert (tmp_path / "closed").exists()
