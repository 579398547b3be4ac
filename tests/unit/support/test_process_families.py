"""Processes below another one that end, or start others, while they are killed."""

import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from typing import cast

import psutil
import pytest

from support.process_families import commands_below, kill_below
from support.waiting import eventually

WAITING = (sys.executable, "-c", "import sys; sys.stdin.read()")


class Root:
    """Process whose children are others at each look."""

    def __init__(self, *looks: Sequence[psutil.Process]) -> None:
        self._looks = [*looks]

    def children(self, *, recursive: bool) -> Sequence[psutil.Process]:
        assert recursive
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]


def root(*looks: Sequence[psutil.Process]) -> psutil.Process:
    return cast(psutil.Process, Root(*looks))


@pytest.fixture
def running() -> Generator[list[subprocess.Popen[bytes]]]:
    """Return two processes that wait."""
    with ExitStack() as stack:
        processes = [stack.enter_context(subprocess.Popen(WAITING, stdin=subprocess.PIPE)) for _ in range(2)]
        for process in processes:
            stack.callback(process.kill)
        yield processes


@pytest.fixture
def ended() -> psutil.Process:
    """Return a process that has ended after it was found."""
    with subprocess.Popen(WAITING, stdin=subprocess.PIPE) as process:
        return psutil.Process(process.pid)


def test_processes_that_end_or_start_meanwhile_are_no_trouble(
    running: list[subprocess.Popen[bytes]], ended: psutil.Process
) -> None:
    first, second = (psutil.Process(process.pid) for process in running)
    kill_below(root([ended, first], [first, second]))
    assert [process.wait(30) for process in running] == [-9, -9]
    assert commands_below(root([ended, psutil.Process()])) == [(psutil.Process(), psutil.Process().cmdline())]


def test_the_children_of_a_real_process_are_killed() -> None:
    program = f"import subprocess; print(subprocess.Popen({WAITING!r}, stdin=-1).wait())"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        eventually(lambda: any([*WAITING] == command for _, command in commands_below(psutil.Process(process.pid))))
        kill_below(psutil.Process(process.pid))
        assert process.communicate(timeout=30)[0] == "-9\n"
