"""A server of scripts/local_postgres.py ends with the process that started it, also when that is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from support.isthmus_program import process_ends
from support.postgres import postgres
from support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

OWNER = """
import sys
from support.postgres import postgres
with postgres() as server:
    print(server.pid, server.folder, flush=True)
    sys.stdin.read()
"""


@contextmanager
def owner() -> Generator[tuple["subprocess.Popen[str]", int, Path]]:
    """Run a process that has started a server; yield it, the server's process id and its folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        pid, folder = process.stdout.readline().split()
        try:
            yield process, int(pid), Path(folder)
        finally:
            process.kill()


def watchers_of(folder: Path) -> list[int]:
    """Return the processes that wait for the end of a folder's owner."""
    return [each.pid for each in psutil.process_iter(["cmdline"]) if (each.info["cmdline"] or [""])[-1] == str(folder)]


def test_a_server_ends_when_the_process_that_started_it_is_killed() -> None:
    with owner() as (process, pid, folder):
        (watcher,) = watchers_of(folder)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        process_ends(pid)
        eventually(lambda: not folder.exists())
        process_ends(watcher)


def test_a_server_whose_watcher_was_killed_too_ends_at_the_next_start() -> None:
    with owner() as (process, pid, folder), owner() as (_, other, kept):
        (watcher,) = watchers_of(folder)
        os.kill(watcher, signal.SIGKILL)
        process_ends(watcher)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        with postgres() as server:
            process_ends(pid)
            assert not folder.exists()
            assert server.is_running()
        assert psutil.pid_exists(other)
        assert kept.exists()


def test_nobody_watches_a_server_that_was_ended() -> None:
    with postgres() as server:
        (watcher,) = watchers_of(server.folder)
        server.stop("immediate")
        server.start()
    process_ends(watcher)
    assert not server.folder.exists()
