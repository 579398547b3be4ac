"""Commands in the background: real processes, one session's own, none left behind."""

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from isthmus.tools.port.base import ToolContext
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.shell.background_commands import MAXIMUM_RUNNING, BackgroundCommands
from isthmus.tools.shell.background_tools import ListBackgroundProcesses, ReadBackgroundOutput, StopBackgroundProcess
from isthmus.tools.shell.run_shell_command import RunShellCommand
from support.process_families import is_alive
from support.tool_calls import said, success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

WAITS = "echo ready; trap 'echo bye; exit 0' TERM; while :; do sleep 0.02; done"


class Session:
    """The tools of one session over common commands."""

    def __init__(self, commands: BackgroundCommands, context: ToolContext) -> None:
        self.commands = commands
        self.context = context
        self.shell = RunShellCommand(background=commands, early_seconds=0.1)

    async def start(self, command: str) -> str:
        return said(await success_of(self.shell, self.context, command=command, is_background=True))

    async def running(self, command: str) -> int:
        """Start a command that stays, and return its pid."""
        found = re.search(r"runs in the background as pid (\d+)", await self.start(command))
        assert found is not None
        return int(found[1])

    async def read(self, pid: int, **arguments: Any) -> str:
        return said(await success_of(ReadBackgroundOutput(self.commands), self.context, pid=pid, **arguments))

    async def ready(self, pid: int) -> None:
        """Wait until a command has printed that it is ready."""

        async def is_ready() -> bool:
            return await self.read(pid) == "ready\nState: running"

        await eventually_async(is_ready, what="the first line")

    async def stop(self, pid: int) -> str:
        return said(await success_of(StopBackgroundProcess(self.commands), self.context, pid=pid))

    async def listed(self) -> str:
        return said(await success_of(ListBackgroundProcesses(self.commands), self.context))


@pytest.fixture
async def session(workspace: Path) -> AsyncGenerator[Session]:
    commands = BackgroundCommands(grace_seconds=0.5)
    yield Session(commands, replace(tool_context(workspace), session="one"))
    await commands.aclose()


async def test_a_command_runs_beside_the_work_is_read_and_stopped(session: Session) -> None:
    pid = await session.running(WAITS)
    await session.ready(pid)
    assert await session.listed() == f"[{pid}] running: {WAITS}"
    assert await session.stop(pid) == f"[{pid}] ended: stopped by the model"
    left = await session.read(pid)
    assert left.startswith("ready\n")
    assert left.endswith("bye\nState: ended: stopped by the model")
    assert not psutil.pid_exists(pid)
    assert session.commands.take_news("one") is None  # the model has been told by the call


async def test_a_command_that_fails_at_once_is_said_at_once(session: Session) -> None:
    session.shell = RunShellCommand(background=session.commands, early_seconds=30)
    said_of_it = await session.start("echo no such port >&2; exit 3")
    assert said_of_it == "The command has ended already (ended with exit code 3).\nOutput: no such port"


async def test_the_model_is_told_once_that_a_command_has_ended(session: Session, workspace: Path) -> None:
    pid = await session.running("until [ -e go ]; do sleep 0.02; done; exit 4")
    assert session.commands.take_news("one") is None
    (workspace / "go").touch()
    await eventually_async(lambda: "exit code 4" in session.commands.of("one")[0].state, what="its end")
    news = session.commands.take_news("one")
    assert news is not None
    assert news.startswith(f"Commands in the background have ended:\n[{pid}] until [ -e go ]")
    assert news.endswith("ended with exit code 4")
    assert session.commands.take_news("one") is None


async def test_the_last_lines_are_returned_and_a_delay_ends_with_the_command(session: Session) -> None:
    pid = await session.running("sleep 0.3; seq 1 500")
    text = await session.read(pid, lines=3, delay_ms=60_000)
    assert text == "[the last 3 of 500 lines]\n498\n499\n500\nState: ended with exit code 0"


async def test_another_session_has_none_of_them(session: Session) -> None:
    pid = await session.running(WAITS)
    other = Session(session.commands, replace(session.context, session="two"))
    assert await other.listed() == "No command runs in the background."
    for attempt in (other.read(pid), other.stop(pid)):
        with pytest.raises(ToolFailure, match=rf"no command of this session .* pid {pid} \(known: none\)"):
            await attempt
    await session.ready(pid)


async def test_more_than_the_limit_are_refused(session: Session) -> None:
    pids = await asyncio.gather(*(session.running("sleep 60") for _ in range(MAXIMUM_RUNNING)))
    with pytest.raises(ToolFailure, match=f"{MAXIMUM_RUNNING} commands run in the background already"):
        await session.start("sleep 60")
    await session.stop(pids[0])
    assert await session.running("sleep 60")


async def test_closing_ends_all_with_what_they_started(session: Session) -> None:
    pid = await session.running("sleep 300 & echo $!; wait")
    await eventually_async(lambda: session.commands.of("one")[0].output.size > 0, what="the child's pid")
    child = int((await session.read(pid)).split()[0])
    await session.commands.aclose()
    assert not psutil.pid_exists(pid)
    await eventually_async(lambda: not _runs(child), what="the end of the child")


async def test_a_command_that_cannot_be_started_is_a_failure(session: Session) -> None:
    broken = replace(session.context, environment={"PATH": "/nowhere", "\ud800": "x"})
    with pytest.raises((ToolFailure, UnicodeEncodeError)):
        await success_of(session.shell, broken, command="true", is_background=True)
    assert session.commands.of("one") == ()


def _runs(pid: int) -> bool:
    try:
        return is_alive(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False
