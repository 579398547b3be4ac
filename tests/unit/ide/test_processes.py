"""Checks for running processes."""

import os
import subprocess
import sys

import pytest

from isthmus.ide.processes import process_is_alive
from support.waiting import eventually


@pytest.mark.parametrize("pid", [0, -1, 2**40, 2**70])
def test_a_number_that_is_no_process_is_not_alive(pid: int) -> None:
    assert not process_is_alive(pid)


def test_this_process_and_the_first_one_are_alive() -> None:
    assert process_is_alive(os.getpid())
    assert process_is_alive(1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells without more that a process is a zombie")
def test_a_process_that_has_ended_is_dead_also_while_nobody_has_looked_after_it() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        assert process_is_alive(process.pid)
        process.kill()
        eventually(lambda: not process_is_alive(process.pid), what="it is dead")
        assert process.returncode is None
