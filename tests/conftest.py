"""Setup of every test: it sees nothing of the developer's machine, and leaves nothing behind.

Each test has its own HOME, XDG folders and TMPDIR, and an environment without keys, proxies, editors and agents.
The working directory is unchanged. Helpers and fakes are in tests/support/, not here.
"""

import asyncio
import faulthandler
import functools
import gc
import inspect
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from isthmus.runtime import process_family
from support import clock_origin, leaks, network, programs, repetition
from support.isolation import IsolatedFolders, isolate

_CLOCK = clock_origin.begin()


def pytest_report_header() -> list[str]:
    """Return whether a missing program fails the run, and where the clocks begin.

    (support.programs reads CI before the first test hides it.)
    """
    return [f"missing programs: {'failure (CI=true)' if programs.IN_CI else 'skip'}", _CLOCK]


# The duration of an example means nothing on a loaded machine; pytest-timeout ends tests that hang.
# Fewer examples than usual: each run has others, and make fuzz has many.
hypothesis.settings.register_profile("isthmus", deadline=None, max_examples=25)
# For make quick, which selects it by pytest's option --hypothesis-profile.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=20)
hypothesis.settings.load_profile("isthmus")


network.stay_on_this_machine()
network.trust_no_authority()


# If a machine forbids bytecode, each process of a run would compile and rewrite all modules of the tests again.
sys.dont_write_bytecode = False


# A shell starts background processes with SIGINT ignored, and programs pass that on to their children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


_ERROR_OUTPUT = pytest.StashKey[int]()

SLOW_EDITORS = frozenset({"emacs", "jupyter", "neovim", "remote-claude", "remote-gemini"})
"""Parameters of tests that run with an editor of this name; to start one, or a companion of its own, takes long."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the run choose the agent behind the servers of the A2A contract suites: see tests/contract/conftest.py."""
    text = "the agent behind the servers of the A2A contract suites; sample: own, and acp in some suites"
    parser.addoption("--agent", choices=("own", "acp", "sample"), default="sample", help=text)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat each test as often as the run says."""
    repetition.repeat(metafunc)


@pytest.fixture(name="repetition")
def _repetition(request: pytest.FixtureRequest) -> int:
    """Number of this repetition of the test; only repeated tests have it."""
    return request.param


def pytest_configure(config: pytest.Config) -> None:
    """Keep the error output of the run apart from that of a test."""
    config.stash[_ERROR_OUTPUT] = os.dup(2)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without looking for garbage, nor among them later: they live to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before -m selects by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the slow files, so that all processes of a run end together; let real programs leave things behind.

    What is about the file of a journal is deselected where the journals of the tests are in PostgreSQL.
    """
    if os.environ.get("ISTHMUS_TEST_JOURNAL") == "postgres":
        of_files = [item for item in items if item.get_closest_marker("sqlite_file") is not None]
        config.hook.pytest_deselected(items=of_files)
        items[:] = [item for item in items if item not in of_files]
    items.sort(key=lambda item: not item.nodeid.startswith(("tests/peers/", "tests/chaos/")))
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and any(
            value in SLOW_EDITORS for value in callspec.params.values() if isinstance(value, str)
        ):
            item.add_marker(pytest.mark.slow)
        if not item.nodeid.startswith(leaks.STRICT_ROOMS):
            for pattern in leaks.LEFT_TO_THE_COLLECTOR:
                kind = f"default:Exception ignored in. {pattern}:pytest.PytestUnraisableExceptionWarning"
                item.add_marker(pytest.mark.filterwarnings(kind))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """End an async test that hangs, from within the event loop.

    pytest-timeout's signal leaves the test waiting on the event loop that the fixtures need for their end: forever.
    """
    test: Any = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test) or hasattr(test, "hypothesis"):
        return
    seconds = _seconds_of(pyfuncitem) * 0.9

    @functools.wraps(test)
    async def bounded(**fixtures: Any) -> None:
        async with asyncio.timeout(seconds):
            await test(**fixtures)

    pyfuncitem.obj = bounded


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """End the whole run, with the stacks of all threads, when the fixtures of a test do not end."""
    faulthandler.dump_traceback_later(_seconds_of(item) + 30, exit=True, file=item.config.stash[_ERROR_OUTPUT])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _seconds_of(item: pytest.Item) -> float:
    """Return the time limit of a test in seconds."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker is not None and marker.args else item.config.getini("timeout"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests on asyncio, which the program uses."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def parents_of_commands() -> None:
    """Start the program for shell commands that lives as long as this process, before tests look at what they leave."""
    if process_family.can_start_families():
        process_family.prepare()


@pytest.fixture(autouse=True)
def everything_closed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test that leaves descriptors, processes or transports open, after all its other fixtures."""
    before = leaks.Open.now()
    yield
    sockets_stay = request.node.get_closest_marker("shares_connections") is not None
    if left := leaks.left_open(before, sockets_stay=sockets_stay):
        names = "Left open:\n  " + "\n  ".join(left)
        if request.node.nodeid.startswith(leaks.CLOSING_ROOMS):
            pytest.fail(names, pytrace=False)
        request.node.warn(pytest.PytestWarning(names))


@pytest.fixture(autouse=True)
def isolated_folders(
    everything_closed: None, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolatedFolders]:
    """Isolate the test from the machine; remove the folders after it."""
    # pytest's own folder is made at its first use: that must not happen inside the TMPDIR of one test.
    tmp_path_factory.getbasetemp()
    with isolate(monkeypatch) as places:
        yield places


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return an empty folder with a resolved absolute path, outside any git repository."""
    folder = tmp_path.resolve() / "workspace"
    folder.mkdir()
    return folder
