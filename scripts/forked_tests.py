"""Tests in several processes beside each other, which are copies of one that has collected them: ``--processes N``.

A pytest plugin. Collecting takes each process of pytest-xdist ten seconds; here one process does it for all. A file's
tests run one after another in one process, which then takes the next file. A process that ends in the middle of a
test fails this test, and another one goes on with the file. Needs ``os.fork``; without it tests run in one process.
"""

import atexit
import os
import random
import signal
import tempfile
import threading
import time
import traceback
import warnings
from collections import defaultdict, deque
from dataclasses import dataclass, field
from multiprocessing import Pipe, connection
from typing import Any, NoReturn

import pytest

END_SECONDS = 20.0
"""Maximum time in seconds for the fixtures of an interrupted test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the run choose the number of processes."""
    parser.addoption("--processes", type=int, default=1, help="number of processes that run tests beside each other")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the collected tests in copies of this process, if there shall be several."""
    options = session.config.option
    stops = session.testsfailed and not options.continue_on_collection_errors
    if options.processes <= 1 or options.collectonly or stops or not session.items or not hasattr(os, "fork"):
        return None  # pytest goes on
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if others:
        message = f"{others}: modules have begun threads while tests were collected; copies of this process have none."
        raise pytest.UsageError(message)
    ForkedRun(session).run(options.processes)
    return True


@dataclass(frozen=True, slots=True)
class Began:
    """A test begins. ``index`` is its place among all tests of the run."""

    index: int


@dataclass(frozen=True, slots=True)
class Reported:
    """A part of a test has ended; ``report`` is as pytest serializes it."""

    report: Any


@dataclass(frozen=True, slots=True)
class Ended:
    """A test has ended with its fixtures."""

    index: int


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning was recorded."""

    category: type[Warning]
    text: str
    file: str
    line: int
    when: Any
    test: str
    location: tuple[str, int, str] | None


@dataclass(frozen=True, slots=True)
class Asks:
    """A process is done with its file, and asks for the tests of another one. It gets none at the end."""


@dataclass(slots=True)
class TestProcess:
    """A copy of this process, with the tests that it has got and not ended yet."""

    pid: int
    messages: Any
    """Connection to it."""
    left: deque[int] = field(default_factory=deque[int])
    began: int | None = None
    """Index of the test that runs."""


class ForkedRun:
    """The run of all tests, in the process that collected them."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._config = session.config
        files: dict[str, list[int]] = defaultdict(list)
        for index, item in enumerate(session.items):
            files[item.nodeid.split("::")[0]].append(index)
        self._files = deque(files.values())
        self._processes: list[TestProcess] = []
        self._number = 0

    def run(self, count: int) -> None:
        """Run the tests in `count` processes."""
        try:
            for _ in range(min(count, len(self._files))):
                self._begin()
            while self._processes:
                by_connection = {process.messages: process for process in self._processes}
                for ready in connection.wait(list(by_connection)):
                    process = by_connection[ready]
                    try:
                        self._take(process, process.messages.recv())
                    except (EOFError, ConnectionError):
                        self._take_end(process)
                self._check()
        finally:
            self._end_all()

    def _end_all(self) -> None:
        """Interrupt the processes that still run, and kill those which do not end."""
        for process in self._processes:
            os.kill(process.pid, signal.SIGINT)
        deadline = time.monotonic() + END_SECONDS
        for process in self._processes:
            while not os.waitpid(process.pid, os.WNOHANG)[0]:
                if time.monotonic() > deadline:
                    os.kill(process.pid, signal.SIGKILL)
                while process.messages.poll(0.05):  # its pipe may be full, and then it waits with a message
                    try:
                        process.messages.recv()
                    except (EOFError, ConnectionError):
                        time.sleep(0.01)
                        break

    def _check(self) -> None:
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _begin(self) -> None:
        """Begin a process with the next file."""
        here, there = Pipe()
        self._number += 1
        if not (pid := os.fork()):
            here.close()
            for process in self._processes:
                process.messages.close()
            _run_as_copy(self._session, there, f"process-{self._number}")
        there.close()
        process = TestProcess(pid, here)
        self._processes.append(process)

    def _take(self, process: TestProcess, message: Began | Reported | Ended | Warned | Asks) -> None:
        hook = self._config.hook
        match message:
            case Asks():
                tests = self._files.popleft() if self._files else []
                process.left.extend(tests)
                process.messages.send(tests)
            case Began(index):
                process.began = index
            case Reported(data):
                report = hook.pytest_report_from_serializable(config=self._config, data=data)
                hook.pytest_runtest_logreport(report=report)
            case Ended(index):
                process.began = None
                process.left.remove(index)
                item = self._session.items[index]
                hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            case Warned():
                warning = warnings.WarningMessage(
                    message.category(message.text), message.category, message.file, message.line
                )
                hook.pytest_warning_recorded.call_historic(
                    kwargs={
                        "warning_message": warning,
                        "when": message.when,
                        "nodeid": message.test,
                        "location": message.location,
                    }
                )

    def _take_end(self, process: TestProcess) -> None:
        """Fail the test in whose middle a process has ended, and begin another one for the rest of its file."""
        self._processes.remove(process)
        process.messages.close()
        code = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
        if not process.left and not code:
            return
        if process.began is None and not process.left:
            message = f"A process of the run ended with exit code {code} after its last test: see its error output."
            raise self._session.Interrupted(message)
        index = process.left[0] if process.began is None else process.began
        item = self._session.items[index]
        report = pytest.TestReport(
            item.nodeid, item.location, {}, "failed", f"The process ended in this test, with exit code {code}.", "call"
        )
        self._config.hook.pytest_runtest_logreport(report=report)
        process.left.remove(index)
        if process.left:
            self._files.appendleft(list(process.left))
        if self._files:
            self._begin()


class AnotherFile:
    """The next test after the last one of a file, for pytest, which keeps the fixtures that the next test needs."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session

    def listchain(self) -> list[pytest.Session]:
        """Return what a test of an unknown file needs."""
        return [self._session]


class CopyReporter:
    """Plugin of a copy, which sends what is reported to the process that collected the tests."""

    def __init__(self, config: pytest.Config, messages: Any) -> None:
        self._config = config
        self._messages = messages

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._messages.send(Reported(data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        """Send a warning, with a general category in place of one that takes other arguments than a text."""
        text, category = str(warning_message.message), warning_message.category
        try:
            category(text)
        except Exception:  # a category of any library may raise anything
            text, category = f"{category.__name__}: {text}", pytest.PytestWarning
        place = (warning_message.filename, warning_message.lineno)
        self._messages.send(Warned(category, text, *place, when, nodeid, location))


def _run_as_copy(session: pytest.Session, messages: Any, name: str) -> NoReturn:
    """Run tests as they come, then end the process."""
    code = 1
    try:
        _run_tests(session, messages, name)
        code = 0
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        os.write(2, traceback.format_exc().encode())  # sys.stderr may be captured
    finally:
        messages.close()
        os._exit(code)


def _run_tests(session: pytest.Session, messages: Any, name: str) -> None:
    config = session.config
    random.seed()  # otherwise all copies have the same
    _capture_apart(config)
    _give_temporary_folder(config, name)
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(CopyReporter(config, messages), "copy_reporter")
    threads: Any = threading
    functions: Any = atexit
    fixtures: Any = session
    try:
        messages.send(Asks())
        while tests := messages.recv():
            items: list[Any] = [session.items[index] for index in tests]
            for place, index in enumerate(tests):
                following = items[place + 1] if place + 1 < len(items) else AnotherFile(session)
                messages.send(Began(index))
                config.hook.pytest_runtest_protocol(item=items[place], nextitem=following)
                messages.send(Ended(index))
            messages.send(Asks())
    finally:
        fixtures._setupstate.teardown_exact(None)  # what is left after an interrupted test
        threads._shutdown()
        functions._run_exitfuncs()


def _capture_apart(config: pytest.Config) -> None:
    """Let what is captured go through files of this process: copies share the files' positions.

    The objects stay: modules have bound ``sys.stderr`` to default arguments.
    """
    manager: Any = config.pluginmanager.getplugin("capturemanager")
    capturing = manager._global_capturing
    manager.suspend_global_capture(in_=False)
    for stream in (capturing.out, capturing.err):
        if hasattr(stream, "targetfd"):
            with tempfile.TemporaryFile(buffering=0) as file:
                os.dup2(file.fileno(), stream.tmpfile.fileno(), inheritable=False)
    manager.resume_global_capture()


def _give_temporary_folder(config: pytest.Config, name: str) -> None:
    """Let the tests of this process have their temporary folders in one of its own."""
    of_run: Any = config
    config.option.basetemp = of_run._tmp_path_factory.getbasetemp() / name
    of_run._tmp_path_factory = pytest.TempPathFactory.from_config(config, _ispytest=True)
