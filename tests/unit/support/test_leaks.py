"""Tests that leave something open, in a run of pytest of their own: each fails for what it left itself."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import support

pytestmark = pytest.mark.slow

TESTS = Path(support.__file__).parent.parent
LEAKING = """
import asyncio
import os
import subprocess
import threading
import time

import pytest

from support import leaks

leaks.SECONDS = 0.6  # nothing that these tests leave closes later, and each waits in vain
kept = []

def test_descriptor():
    kept.append(os.open(os.devnull, os.O_RDONLY))

def test_process():
    kept.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE))  # ends with this run

@pytest.mark.anyio
async def test_transport():
    server = await asyncio.start_server(lambda reader, writer: kept.append(writer), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    kept.append(writer)
    server.close()

def test_closed_at_once():
    os.close(os.open(os.devnull, os.O_RDONLY))
    subprocess.run(["true"], check=True)

def test_closed_by_a_thread():
    descriptor, ended = os.open(os.devnull, os.O_RDONLY), threading.Event()
    threading.Thread(target=lambda: ended.wait(0.05) or os.close(descriptor)).start()
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run the tests above in three rooms, with the set-up of this project's tests; return what pytest prints."""
    folder = tmp_path_factory.mktemp("leaking")
    for room in ("unit", "peers", "chaos"):
        (folder / "tests" / room).mkdir(parents=True)
        (folder / "tests" / room / "test_it.py").write_text(LEAKING, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\ntimeout = 60\naddopts = --import-mode=importlib\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "tests"]
    variables = os.environ | {"PYTHONPATH": str(TESTS)}
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100, env=variables)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return ended.stdout


def failure(output: str, test: str) -> str:
    """Return the text about one test at its tear-down."""
    _, _, after = output.partition(f"ERROR at teardown of {test}")
    return after.partition("\n___")[0].partition("\n===")[0]


def test_a_descriptor_that_is_left_open_fails_its_test(output: str) -> None:
    assert f"({os.devnull}) of no object" in failure(output, "test_descriptor")


def test_a_process_that_is_left_fails_its_test(output: str) -> None:
    assert re.search(r"\((sleeping|running)\): \['cat'\]", failure(output, "test_process"))


def test_a_transport_that_is_left_open_fails_its_test(output: str) -> None:
    text = failure(output, "test_transport")
    assert text.count("_SelectorSocketTransport") == 2
    assert "socket:[" in text


def test_what_closes_during_the_test_or_in_a_moment_is_no_failure(output: str) -> None:
    assert output.count("ERROR at teardown") == 6


def test_tests_that_end_programs_at_any_moment_are_only_warned(output: str) -> None:
    assert "15 passed, 3 warnings, 6 errors" in output
    _, _, warnings = output.partition("warnings summary")
    assert warnings.count("PytestWarning: Left open:") == 3
    assert "tests/chaos/test_it.py::test_process" in warnings
