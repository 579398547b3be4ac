import asyncio
import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from isthmus.development_tool import ExecuteDetails
from isthmus.tools.port.base import Approved, ToolFailed, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.shell.run_shell_command import RunShellCommand
from support.tool_calls import failure_of, progress_and_result, result_of, success_of, tool_context
from support.tool_calls import running as running_context
from support.waiting import eventually, eventually_async

pytestmark = pytest.mark.anyio


async def model_text(workspace: Path, command: str, **arguments: Any) -> str:
    return (await success_of(RunShellCommand(), tool_context(workspace), command=command, **arguments)).for_model


def running(marker: str) -> list[int]:
    """Return the processes that have `marker` in their command line or environment."""
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and (
                marker in " ".join(process.cmdline()) or marker in process.environ().values()
            ):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo out; echo err >&2", "Output: out\nerr"),
        ("true", "Output: (empty)"),
        ("echo x; exit 3", "Output: x\nExit Code: 3"),
        ("kill -TERM $$", "Output: (empty)\nSignal: 15 (SIGTERM)"),
        ("missing-command-x", "Exit Code: 127"),
        ("read line; echo \"[$line] $?\"", "Output: [] 1"),
        ("printf 'a\\0\\377\\033[31mb'", "Output: a\ufffd\ufffdb"),
        ("test -t 1 || echo $TERM", "Output: dumb"),
        ("[[ a == a ]] && echo bash", "Output: bash"),
        ("printf é", "Output: é"),
    ],
)  # fmt: skip
async def test_the_model_sees_output_exit_code_and_signal(workspace: Path, command: str, expected: str) -> None:
    assert expected in await model_text(workspace, command)


async def test_the_user_sees_the_output_and_what_went_wrong(workspace: Path) -> None:
    result = await success_of(RunShellCommand(), tool_context(workspace), command="echo x; exit 2")
    assert result.output.text == "x\nExit Code: 2"


async def test_the_command_has_only_the_environment_of_its_task(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "secret")
    context = tool_context(workspace, {"PATH": os.environ["PATH"], "GIVEN": "yes"})
    result = await success_of(RunShellCommand(), context, command='echo "$GIVEN-$AGENT_TOKEN"')
    assert result.for_model == "Output: yes-"


async def test_git_runs_no_program_of_a_bare_repository_that_a_clone_holds_as_files(
    workspace: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    hook = workspace / "hook"
    hook.write_text(f"#!/bin/sh\ntouch '{ran}'\n", encoding="utf-8")
    hook.chmod(0o755)
    sub = workspace / "sub"
    for command in (
        ["git", "init", "-q", str(workspace)],
        ["git", "init", "-q", "--bare", str(sub)],
        ["git", "-C", str(sub), "config", "core.bare", "false"],
        ["git", "-C", str(sub), "config", "core.worktree", "."],
        ["git", "-C", str(sub), "config", "core.fsmonitor", str(hook)],
    ):
        subprocess.run(command, check=True)
    subprocess.run(["git", "-C", str(sub), "status"], check=True, capture_output=True)
    assert ran.exists()  # as it is without the agent
    ran.unlink()
    variables = {**os.environ, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "given"}
    context = tool_context(workspace, variables)
    command = "git config a.b; cd sub && git status"
    text = (await success_of(RunShellCommand(), context, command=command)).for_model
    assert "given" in text
    assert "safe.bareRepository" in text
    assert not ran.exists()


async def test_the_folder_is_the_workspace_or_one_in_it(workspace: Path) -> None:
    (workspace / "sub").mkdir()
    assert await model_text(workspace, "pwd") == f"Output: {workspace}"
    assert await model_text(workspace, "pwd", dir_path="sub") == f"Output: {workspace / 'sub'}"
    details = await RunShellCommand().propose({"command": "pwd", "dir_path": "sub"}, tool_context(workspace))
    assert details == ExecuteDetails("pwd", str(workspace / "sub"))


@pytest.mark.parametrize(
    ("arguments", "category"),
    [
        ({"command": "ls", "dir_path": ".."}, "outside_workspace"),
        ({"command": "ls", "dir_path": "none"}, "file_not_found"),
        ({"command": "ls", "dir_path": "file"}, "path_is_not_a_directory"),
        ({"command": "sleep 9", "is_background": True}, "invalid_arguments"),
        ({"command": ""}, "invalid_arguments"),
        ({"command": "a\0b"}, "invalid_arguments"),
        ({}, "invalid_arguments"),
    ],
)
async def test_what_cannot_run_is_refused_before_anybody_is_asked(
    workspace: Path, arguments: dict[str, Any], category: str
) -> None:
    (workspace / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ToolFailure) as failure:
        await RunShellCommand().propose(arguments, tool_context(workspace))
    assert failure.value.category == category


async def test_a_folder_that_is_another_one_than_approved_is_refused(workspace: Path) -> None:
    (workspace / "a").mkdir()
    (workspace / "b").mkdir()
    tool, context, arguments = RunShellCommand(), tool_context(workspace), {"command": "touch x", "dir_path": "a"}
    approved = Approved(await tool.propose(arguments, context))
    (workspace / "a").rmdir()
    (workspace / "a").symlink_to("b")
    with pytest.raises(ToolFailure, match="no longer the approved folder"):
        await result_of(tool, context, approved, **arguments)
    assert not (workspace / "b" / "x").exists()


async def test_a_command_line_that_the_system_refuses_is_a_failure(workspace: Path) -> None:
    with pytest.raises(ToolFailure, match="cannot be started"):
        await result_of(RunShellCommand(), tool_context(workspace), command="echo " + "x" * 3_000_000)


async def test_output_is_shown_while_it_comes_whole_each_time(workspace: Path) -> None:
    context = tool_context(workspace)
    arguments = {"command": "echo one; until test -e go; do sleep 0.01; done; echo two"}
    seen: list[str] = []

    def show(text: str) -> None:
        seen.append(text)
        (workspace / "go").touch()

    async with asyncio.timeout(60):
        result = await RunShellCommand().run(arguments, running_context(context, progress=show))
    assert isinstance(result, ToolSucceeded)
    assert result.for_model == "Output: one\ntwo"
    assert seen[0] == "one\n"
    assert set(seen[1:]) <= {"one\ntwo\n"}


async def test_updates_do_not_come_for_every_line(workspace: Path) -> None:
    shown, _ = await progress_and_result(RunShellCommand(), tool_context(workspace), command="seq 1 200000")
    assert len(shown) < 2_000  # a few a second, regardless of the duration
    assert all(len(text) < 31_000 for text in shown)


async def test_long_output_names_the_file_that_has_all_of_it(workspace: Path) -> None:
    text = await model_text(workspace, "seq 1 200000")
    (path,) = (workspace.parent / "outputs").iterdir()
    assert f"all of it is in {path}]" in text
    assert path.read_text(encoding="utf-8") == "".join(f"{number}\n" for number in range(1, 200_001))
    assert text.startswith("Output: 1\n2\n")
    assert "\n200000\n[The output has" in text
    assert len(text) < 31_000


async def test_a_call_id_never_leads_out_of_the_output_folder(workspace: Path) -> None:
    from dataclasses import replace

    context = replace(tool_context(workspace), tool_call_id="../../x/y")
    await success_of(RunShellCommand(), context, command="seq 1 20000")
    (path,) = (workspace.parent / "outputs").iterdir()
    assert re.fullmatch(r"\.\._\.\._x_y-[0-9a-f]{8}\.txt", path.name)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["sleep 1000.{} & echo done", "(trap '' TERM; sleep 1000.{}; :) & echo done"])
async def test_what_a_command_leaves_in_the_background_does_not_hold_it_and_is_ended(
    workspace: Path, command: str
) -> None:
    marker = str(os.getpid())
    async with asyncio.timeout(60):
        text = await model_text(workspace, command.format(marker))
    assert text.startswith("Output: done\nBackground processes that were still running were ended: ")
    assert not running(f"1000.{marker}")


async def test_a_daemon_with_the_pipe_in_its_hands_does_not_hold_the_call(workspace: Path) -> None:
    async with asyncio.timeout(60):
        text = await model_text(workspace, "setsid sleep 1000 & echo $!")
    with contextlib.suppress(psutil.NoSuchProcess):
        daemon = psutil.Process(int(text.removeprefix("Output: ").split("\n")[0]))
        if "1000" in daemon.cmdline():
            daemon.kill()


COMMANDS = {
    "echo started; sleep 1000": 1,
    "echo started; sleep 1000 & sleep 1000; wait": 3,
    "trap '' TERM; echo started; (trap '' TERM; sleep 1000 & wait) & while true; do sleep 0.1; done": 2,
    "setsid sleep 1000 & echo started; sleep 1000": 2,
    "setsid bash -c 'trap \"\" TERM; while true; do sleep 0.1; done' & echo started; sleep 1000": 2,
}
"""Commands, and the minimum number of processes of each."""


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
async def test_cancelling_ends_everything_that_the_command_started(workspace: Path, command: str) -> None:
    marker = f"cancelled-{os.getpid()}-{list(COMMANDS).index(command)}"
    context = tool_context(workspace, {"PATH": os.environ["PATH"], "MARKER": marker})
    started = asyncio.Event()

    call = running_context(context, progress=lambda _: started.set())
    task = asyncio.create_task(RunShellCommand(grace_seconds=0.2).run({"command": command}, call))
    async with asyncio.timeout(60):
        await started.wait()
        await eventually_async(lambda: len(running(marker)) >= COMMANDS[command], what="all processes run")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await eventually_async(lambda: not running(marker), what="no process is left")


async def test_a_second_cancellation_does_not_wait_for_the_grace_period(workspace: Path) -> None:
    marker = f"twice-{os.getpid()}"
    context = tool_context(workspace, {"PATH": os.environ["PATH"], "MARKER": marker})
    command = "trap '' TERM; echo started; while true; do sleep 0.1; done"
    started = asyncio.Event()

    call = running_context(context, progress=lambda _: started.set())
    task = asyncio.create_task(RunShellCommand().run({"command": command}, call))
    async with asyncio.timeout(60):
        await started.wait()
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=0.05)
    await eventually_async(lambda: not running(marker), what="no process is left")


@pytest.mark.slow
async def test_a_silent_command_is_ended_and_what_it_printed_is_kept(workspace: Path) -> None:
    marker = f"silent-{os.getpid()}"
    context = tool_context(workspace, {"PATH": os.environ["PATH"], "MARKER": marker})
    async with asyncio.timeout(60):
        failure = await failure_of(RunShellCommand(2.0), context, command="echo begun; sleep 1000")
    assert failure.error.type == "shell_timeout"
    assert failure.for_model == ("The command was ended: it printed nothing for 2 s. Its output until then:\nbegun\n")
    assert not running(marker)


@pytest.mark.slow
async def test_a_command_that_prints_now_and_then_is_not_ended(workspace: Path) -> None:
    result = await success_of(
        RunShellCommand(3.0), tool_context(workspace), command="for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done"
    )
    assert result.for_model == "Output: 1\n2\n3\n4\n5\n6\n7\n8"


async def test_two_commands_run_side_by_side(workspace: Path) -> None:
    one = model_text(workspace, "touch a; until test -e b; do sleep 0.01; done; echo one")
    two = model_text(workspace, "touch b; until test -e a; do sleep 0.01; done; echo two")
    async with asyncio.timeout(60):
        assert await asyncio.gather(one, two) == ["Output: one", "Output: two"]


AGENT = """
import asyncio, os, sys
from pathlib import Path
from isthmus.tools.port.base import CallContext
from isthmus.tools.shell.run_shell_command import RunShellCommand
from isthmus.tools.port.workspace import Workspace

async def main():
    folder = Path(sys.argv[1])
    shown = lambda text: print("started", flush=True)
    context = CallContext(Workspace(folder), "c", folder, dict(os.environ), progress=shown)
    command = (
        "trap '' TERM; setsid sleep 1000 & env -i bash -c 'while :; do sleep 0.1; done' $MARKER & "
        "echo started; while true; do sleep 0.1; done"
    )
    await RunShellCommand().run({"command": command}, context)

asyncio.run(main())
"""


async def test_nothing_survives_a_kill_of_the_agent(workspace: Path) -> None:
    marker = f"killed-{os.getpid()}"
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(workspace)], stdout=subprocess.PIPE, env={**os.environ, "MARKER": marker}
    )
    try:
        assert agent.stdout is not None
        assert await asyncio.to_thread(agent.stdout.readline) == b"started\n"
        await eventually_async(lambda: len(running(marker)) >= 4, what="all processes run")
    finally:
        agent.kill()
        agent.communicate()
    await eventually_async(lambda: not running(marker), what="no process is left")


async def test_no_guard_is_left_after_a_call(workspace: Path) -> None:
    before = {child.pid for child in psutil.Process().children()}
    await model_text(workspace, "true")
    eventually(lambda: {child.pid for child in psutil.Process().children()} <= before, what="no child is left")


async def test_a_command_is_ended_at_the_timeout_of_its_call(workspace: Path) -> None:
    command = "echo begun; while sleep 0.05; do echo x; done"
    result = await result_of(RunShellCommand(), tool_context(workspace), command=command, timeout=1000)
    assert isinstance(result, ToolFailed)
    assert result.error.type == "shell_timeout"
    assert result.for_model.startswith(
        "The command was ended: it ran for 1 s, its timeout. Its output until then:\nbegun\n"
    )


async def test_a_command_with_a_timeout_may_be_silent_for_as_long(workspace: Path) -> None:
    tool = RunShellCommand(inactivity_seconds=0.1)
    result = await result_of(tool, tool_context(workspace), command="sleep 0.4; echo done", timeout_ms=20_000)
    assert isinstance(result, ToolSucceeded)
    assert result.for_model == "Output: done"


@pytest.mark.parametrize("timeout", [0, 60, -1, 14_400_001])
async def test_a_timeout_that_cannot_be_meant_is_refused(workspace: Path, timeout: int) -> None:
    with pytest.raises(ToolFailure, match="timeout: expected a whole number of 1000 or more, at most 14400000"):
        await RunShellCommand().propose({"command": "true", "timeout": timeout}, tool_context(workspace))
