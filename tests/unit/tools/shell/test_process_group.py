"""Processes that a guard ends when the process it guards is killed."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from isthmus.tools.shell.process_group import process_group
from support.process_families import is_alive
from support.waiting import eventually

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="marked processes are found in /proc")

PROGRAM = """
import asyncio, os, sys
from isthmus.runtime.group_guard import MARK, group_guard

async def main():
    async with group_guard("a-mark-of-its-own") as announce:
        child = await asyncio.create_subprocess_exec(
            "sleep", "1000", env={**os.environ, MARK: "a-mark-of-its-own"}, start_new_session=True
        )
        if sys.argv[1] == "announced":
            announce(child.pid)
        print(child.pid, flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["announced", "not yet announced"])
def test_a_process_that_was_just_started_ends_with_a_killed_agent(how: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, how], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        child = psutil.Process(int(program.stdout.readline()))
        os.kill(program.pid, signal.SIGKILL)
    eventually(lambda: not is_alive(child), 30, what="the child has ended")


@pytest.mark.anyio
async def test_a_killed_command_has_ended_before_the_caller_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waitpid, leaders = os.waitpid, list[int]()

    def late(pid: int, options: int) -> tuple[int, int]:
        found = waitpid(pid, options)
        if pid in leaders:
            threading.Event().wait(0.3)  # As on a busy machine.
        return found

    monkeypatch.setattr(os, "waitpid", late)
    command = ["bash", "-c", "while true; do sleep 0.1; done"]
    async with process_group(command, tmp_path, dict(os.environ), lambda _: None, grace_seconds=0) as group:
        leaders.append(group.id)
    assert group.exit_code is not None
