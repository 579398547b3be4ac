"""All that a command starts stays below a parent, which ends it, and tells what it could not end."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from isthmus.runtime import family_program, process_family
from isthmus.runtime.process_family import ProcessFamily, can_start_families, start_family
from isthmus.tools.shell.run_shell_command import RunShellCommand
from support.tool_calls import success_of, tool_context
from support.waiting import eventually, eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not can_start_families(), reason="Linux alone has subreapers")]

LEAVING = {
    "setsid": "setsid {sleep} & echo done",
    "double fork": "(setsid sh -c '{sleep} & exit' &); echo done",
    "no environment": "(setsid env -i {sleep} &); echo done",
    "no environment, deaf": "(setsid env -i sh -c 'trap \"\" TERM HUP; {sleep}; {sleep}' &); echo done",
}
"""Commands that leave a process outside of their group."""


def sleeping(seconds: str) -> list[int]:
    """Return the ids of processes that sleep for so many seconds."""
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and seconds in process.cmdline():
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize("way", LEAVING)
async def test_what_leaves_the_group_is_ended_with_the_command_and_named(workspace: Path, way: str) -> None:
    seconds = f"1000.{os.getpid()}{list(LEAVING).index(way)}"
    command = LEAVING[way].format(sleep=f"sleep {seconds}")
    async with asyncio.timeout(60):
        result = await success_of(RunShellCommand(grace_seconds=0.2), tool_context(workspace), command=command)
    assert result.for_model.startswith("Output: done\n")
    assert "\nBackground processes that were still running were ended: " in result.for_model
    assert not sleeping(seconds)


AGENT = """
import asyncio, os, sys
from pathlib import Path
from isthmus.tools.port.base import CallContext
from isthmus.tools.shell.run_shell_command import RunShellCommand
from isthmus.tools.port.workspace import Workspace

async def main():
    folder = Path(sys.argv[1])
    context = CallContext(Workspace(folder), "c", folder, dict(os.environ), progress=lambda _: print("on", flush=True))
    command = f"(setsid env -i sleep {sys.argv[2]} &); echo started; while :; do sleep 0.1; done"
    await RunShellCommand().run({"command": command}, context)

asyncio.run(main())
"""


async def test_nothing_outside_of_the_group_survives_a_kill_of_the_agent(workspace: Path) -> None:
    seconds = f"1000.{os.getpid()}9"
    agent = subprocess.Popen([sys.executable, "-c", AGENT, str(workspace), seconds], stdout=subprocess.PIPE)
    try:
        assert agent.stdout is not None
        assert await asyncio.to_thread(agent.stdout.readline) == b"on\n"
        await eventually_async(lambda: sleeping(seconds), what="the process has left the group")
    finally:
        agent.kill()
        agent.communicate()
    await eventually_async(lambda: not sleeping(seconds), what="no process is left")


async def test_a_process_that_survives_is_named(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Surviving(ProcessFamily):
        async def end_rest(self) -> None:
            await super().end_rest()
            self.survived = (os.getpid(),)

    monkeypatch.setattr(process_family, "ProcessFamily", Surviving)
    result = await success_of(RunShellCommand(), tool_context(workspace), command="echo done")
    name = psutil.Process().name()
    assert result.for_model == (
        f"Output: done\nProcesses that the command started could not be ended, and still run: {os.getpid()} ({name})"
    )


def test_a_process_of_another_user_is_reported_as_a_survivor(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    signals: list[int] = []

    def refuse(_: int, number: int) -> None:
        signals.append(number)
        raise PermissionError

    monkeypatch.setattr(family_program, "KILL_SECONDS", 0.0)
    monkeypatch.setattr(family_program, "descendants", {os.getpid(): {7}}.__getitem__)
    monkeypatch.setattr(os, "kill", refuse)
    family_program.CommandFamily(write_end, 0.0).end_rest()
    os.close(write_end)
    with os.fdopen(read_end) as reports:
        assert reports.read() == "left\nsurvived 7\n"
    assert set(signals) == {signal.SIGKILL}


async def started(folder: Path, *command: str, output: int = 1) -> ProcessFamily:
    environment = {"PATH": os.environ["PATH"]}
    return await start_family(command, folder=folder, environment=environment, output=output, grace_seconds=0.2)


async def test_a_command_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    before = set(psutil.Process().children())
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        await started(tmp_path, "no-such-program")
    with pytest.raises(NotADirectoryError):
        await started(tmp_path, f"{__file__}/x")
    await eventually_async(lambda: set(psutil.Process().children()) <= before, what="no parent is left")


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("kill -SEGV $$", -11), ("kill -9 $$", -9)])
async def test_the_exit_code_is_the_commands(tmp_path: Path, command: str, code: int) -> None:
    family = await started(tmp_path, "sh", "-c", command)
    async with asyncio.timeout(60):
        assert await family.wait() == code
    await family.end_rest()
    assert (family.ended, family.survived) == ((), ())


async def test_a_parent_that_is_killed_does_not_hold_the_call(tmp_path: Path) -> None:
    family = await started(tmp_path, "sleep", "1000")
    parent = psutil.Process(family.leader).parent()
    assert parent is not None
    parent.kill()
    async with asyncio.timeout(60):
        assert await family.wait() == -signal.SIGKILL
        await family.end_rest()
    os.kill(family.leader, signal.SIGKILL)


async def test_a_cancelled_end_kills_at_once(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    try:
        environment = {"PATH": os.environ["PATH"]}
        deaf = "trap '' TERM; echo deaf; while :; do sleep 0.05; done"
        family = await start_family(
            ("sh", "-c", deaf), folder=tmp_path, environment=environment, output=write_end, grace_seconds=600
        )
        assert await asyncio.to_thread(os.read, read_end, 16) == b"deaf\n"
        ending = asyncio.create_task(family.end_rest())
        async with asyncio.timeout(60):
            while not ending.done():
                await asyncio.wait({ending}, timeout=0.05)
                ending.cancel()
        assert ending.cancelled()
        eventually(lambda: not psutil.pid_exists(family.leader), what="the command has ended")
    finally:
        os.close(read_end)
        os.close(write_end)


async def test_a_command_is_started_after_the_program_of_parents_was_killed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_family, "_makers", {})
    family = await started(workspace, "sleep", "1000")
    parent = psutil.Process(family.leader).parent()
    assert parent is not None
    maker = parent.parent()
    assert maker is not None
    maker.kill()
    # A command that runs is ended as before, and the next one gets a new program.
    await family.end_rest()
    assert await family.wait() == -signal.SIGTERM
    result = await success_of(RunShellCommand(), tool_context(workspace), command="echo on")
    process_family.close()
    assert result.for_model == "Output: on"
