"""Shell commands in the real sandbox: forbidden and allowed actions, and no process is left behind."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from isthmus.sandbox.policy import OpenPath
from isthmus.tools.port.base import Approved
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.shell.run_shell_command import RunShellCommand
from support.programs import require
from support.sandboxing import confined_shell, shell_environment
from support.tool_calls import failure_of, success_of, tool_context
from support.tool_calls import running as running_context
from support.waiting import eventually, eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "user"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id").write_text("the key")
    return folder


async def ran(home: Path, workspace: Path, command: str, **opened: Any) -> str:
    """Return the result of a command in the sandbox, as the model gets it."""
    context = tool_context(workspace, shell_environment(home))
    return (await success_of(confined_shell(home, **opened), context, command=command)).for_model


async def test_the_workspace_can_be_changed_and_the_exit_code_comes_through(home: Path, workspace: Path) -> None:
    assert await ran(home, workspace, "pwd; echo new > made; echo wrong >&2; exit 3") == (
        f"Output: {workspace}\nwrong\nExit Code: 3"
    )
    assert (workspace / "made").read_text() == "new\n"
    assert await ran(home, workspace, "kill -TERM $$") == "Output: (empty)\nExit Code: 143"


async def test_nothing_outside_can_be_written(home: Path, workspace: Path, tmp_path: Path) -> None:
    (beside := tmp_path / "beside").mkdir()
    said = await ran(home, workspace, f"echo x > /etc/isthmus-was-here; echo x > {beside}/made; echo x > /usr/made")
    assert "/etc/isthmus-was-here: Read-only file system" in said
    assert "/usr/made: Read-only file system" in said
    assert not Path("/etc/isthmus-was-here").exists()
    assert not any(beside.iterdir())


async def test_the_home_folder_is_an_empty_one_of_the_commands_own(home: Path, workspace: Path) -> None:
    (home / "notes").write_text("private")
    said = await ran(home, workspace, "ls -A ~; cat ~/.ssh/id; cat ~/notes; echo x > ~/made && cat ~/made")
    assert "key" not in said
    assert "private" not in said
    assert said.endswith("\nx")
    assert sorted(path.name for path in home.iterdir()) == [".ssh", "notes"]


async def test_tools_kept_at_home_can_be_used_and_not_changed(home: Path, workspace: Path) -> None:
    (home / ".local" / "bin").mkdir(parents=True)
    program = home / ".local" / "bin" / "mine"
    program.write_text("#!/bin/sh\necho it runs\n")
    program.chmod(0o755)
    said = await ran(home, workspace, "~/.local/bin/mine; echo x >> ~/.local/bin/mine")
    assert "it runs" in said
    assert "Read-only file system" in said


async def test_the_real_home_folders_of_the_machine_are_closed(home: Path, workspace: Path) -> None:
    assert await ran(home, workspace, "ls -A /home /root 2>&1 | grep -v : | grep .") == "Output: (empty)\nExit Code: 1"


async def test_tmp_is_private(home: Path, workspace: Path) -> None:
    mark = Path("/tmp/isthmus-sandbox-test")
    assert not mark.exists()
    assert await ran(home, workspace, f"echo x > {mark}; cat {mark}; echo $TMPDIR; ls /var/tmp") == "Output: x\n/tmp"
    assert not mark.exists()


async def test_there_is_no_network_but_a_loopback_of_its_own(home: Path, workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected"
        said = await ran(home, workspace, connect)
        assert "Connection refused" in said
        assert "connected" not in said
        assert await ran(home, workspace, connect, has_network=True) == "Output: connected"
    own = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())"
    assert await ran(home, workspace, f'{sys.executable} -c "{own}" && echo fine', paths=interpreter()) == (
        "Output: fine"
    )


def interpreter() -> tuple[OpenPath, ...]:
    folders = {sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix)} - {"/usr"}
    return tuple(OpenPath(folder, is_writable=False) for folder in sorted(folders))


async def test_sockets_of_services_are_out_of_reach(home: Path, workspace: Path) -> None:
    assert await ran(home, workspace, "ls /run; ls /tmp/.X11-unix 2>/dev/null") == "Output: (empty)\nExit Code: 2"


async def test_a_command_has_only_the_variables_that_are_declared(home: Path, workspace: Path) -> None:
    context = tool_context(workspace, shell_environment(home, SECRET_OF_MINE="s", GIVEN="g", LC_TIME="C"))
    sandboxed = confined_shell(home, passed=("GIVEN", "MISSING"), variables=(("SET", "v"),))
    result = await success_of(sandboxed, context, command='echo "$GIVEN $SET $SECRET_OF_MINE$MISSING. $LC_TIME $TERM"')
    assert result.for_model == "Output: g v . C dumb"


async def test_processes_outside_are_not_seen_and_not_reached(home: Path, workspace: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as outside:
        try:
            said = await ran(home, workspace, f"kill -KILL {outside.pid}; ls -d /proc/[0-9]* | wc -l; true")
            assert "No such process" in said
            assert int(said.split()[-1]) < 10
            assert outside.poll() is None
        finally:
            outside.kill()


async def test_there_is_no_terminal_and_no_way_to_more_rights(home: Path, workspace: Path) -> None:
    said = await ran(home, workspace, "(: < /dev/tty) 2>&1; grep -E 'NoNewPrivs|CapEff' /proc/self/status")
    assert "No such device or address" in said
    assert "NoNewPrivs:\t1" in said
    assert "CapEff:\t0000000000000000" in said


async def test_paths_of_the_settings_are_opened_as_they_say(home: Path, workspace: Path, tmp_path: Path) -> None:
    (home / "data").mkdir()
    (home / "data" / "a").write_text("here\n")
    (cache := tmp_path / "cache").mkdir()
    (home / "link").symlink_to(cache)
    paths = (OpenPath("~/data", is_writable=False), OpenPath("~/link", is_writable=True))
    said = await ran(home, workspace, "cat ~/data/a; echo x > ~/data/b; echo y > ~/link/made", paths=paths)
    assert said.startswith("Output: here\n")
    assert "data/b: Read-only file system" in said
    assert (cache / "made").read_text() == "y\n"


async def test_a_path_that_is_missing_is_told_before_anything_runs(home: Path, workspace: Path) -> None:
    sandboxed = confined_shell(home, paths=(OpenPath("~/nowhere", is_writable=True),))
    with pytest.raises(ToolFailure, match=r"sandbox\.paths: ~/nowhere does not exist"):
        await success_of(sandboxed, tool_context(workspace, shell_environment(home)), command="touch ran")
    assert not (workspace / "ran").exists()


async def test_secrets_stay_closed_where_the_home_folder_is_the_workspace(home: Path) -> None:
    (home / ".bashrc").write_text("")
    (home / ".netrc").write_text("password")
    said = await ran(home, home, "cat .ssh/id; ls -A .ssh; cat .netrc; touch .ssh/new; echo x >> .bashrc; touch fine")
    assert "the key" not in said
    assert ".netrc: Permission denied" in said
    assert "'.ssh/new': Read-only file system" in said
    assert ".bashrc: Read-only file system" in said
    assert (home / "fine").exists()
    listed = (OpenPath("~/.ssh/id", is_writable=False),)
    assert await ran(home, home, "cat .ssh/id", paths=listed) == "Output: the key"


async def test_our_own_folder_is_closed_but_for_the_outputs_of_the_task(home: Path, workspace: Path) -> None:
    own = workspace / "data"
    (own / "outputs").mkdir(parents=True)
    (own / "journal").write_text("everybody's tasks")
    (workspace.parent / "outputs").mkdir()
    (workspace.parent / "outputs" / "long.txt").write_text("all of it")
    context = tool_context(workspace, shell_environment(home))
    command = f"cat data/journal; cat {context.output_folder}/long.txt; touch {context.output_folder}/x"
    said = (await success_of(confined_shell(home, own), context, command=command)).for_model
    assert "tasks" not in said
    assert "all of it" in said
    assert "Read-only file system" in said


async def test_what_would_run_outside_later_cannot_be_written(home: Path, workspace: Path) -> None:
    subprocess.run([str(require("git")), "init", "-q", str(workspace)], check=True)
    (workspace / ".mcp.json").write_text("{}")
    before = (workspace / ".git" / "config").read_text()
    command = (
        "echo x > .git/hooks/pre-commit; git config core.fsmonitor /tmp/x; echo x >> .mcp.json; mv .git .git2;"
        " mkdir -p .gemini/commands; rm -rf .git/hooks; ls .git/HEAD"
    )
    said = await ran(home, workspace, command)
    assert ".git/hooks/pre-commit: Read-only file system" in said
    assert "cannot move '.git'" in said
    assert (workspace / ".git" / "config").read_text() == before
    assert (workspace / ".mcp.json").read_text() == "{}"
    assert not (workspace / ".git" / "hooks" / "pre-commit").exists()
    assert not (workspace / ".gemini" / "commands").exists()
    said = await ran(
        home,
        workspace,
        "git config user.name me; git config user.email e; touch a; git add a; git commit -qm a; git log --format=%an",
        paths=(OpenPath(".git/config", is_writable=True),),
    )
    assert said == "Output: me"


OPENING_FOR_WRITING = """
import errno, os, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_WRONLY))  # opened, never written
    except OSError as error:
        print(errno.errorcode[error.errno])
    else:
        print("WRITABLE", path)
"""


async def test_settings_of_the_whole_machine_cannot_be_opened_for_writing(home: Path, workspace: Path) -> None:
    (workspace / "open.py").write_text(OPENING_FOR_WRITING)
    found = [path for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger") if Path(path).exists()]
    found += [str(path) for path in sorted(Path("/proc/irq").rglob("*affinity*"))[:3]]
    said = await ran(home, workspace, f"/usr/bin/python3 open.py {' '.join(found)}")
    lines = said.removeprefix("Output: ").splitlines()
    assert len(lines) == len(found)
    assert set(lines) <= {"EROFS", "EACCES", "EPERM"}


async def test_no_socket_leads_out_and_no_file_gives_its_owners_rights(home: Path, workspace: Path) -> None:
    script = """
import errno, os, socket
def tried(what):
    try:
        what()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"
print(tried(lambda: socket.socket(40, socket.SOCK_STREAM)))
print(tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)))
print(tried(lambda: socket.socketpair()))
open("tool", "w").close()
print(tried(lambda: os.chmod("tool", 0o4755)))
print(tried(lambda: os.open("other", os.O_CREAT | os.O_WRONLY, 0o4755)))
print(tried(lambda: os.chmod("tool", 0o755)))
"""
    (workspace / "try.py").write_text(script)
    said = await ran(home, workspace, "/usr/bin/python3 try.py")
    assert said.split() == ["Output:", "EAFNOSUPPORT", "done", "done", "EPERM", "EPERM", "done"]
    assert (workspace / "tool").stat().st_mode & 0o7777 == 0o755
    assert not (workspace / "other").exists()


async def test_git_is_not_led_to_another_configuration(home: Path, workspace: Path, tmp_path: Path) -> None:
    git = str(require("git"))
    subprocess.run([git, "init", "-q", str(workspace)], check=True)
    lead_away = (
        "mkdir away; cp -r .git/objects .git/refs away; echo '[core] hooksPath = /tmp/x' > away/config;"
        " echo ../away > .git/commondir; rm -f .git/commondir; ln -sf ../away .git/commondir;"
        " git -c user.name=me -c user.email=e commit -q --allow-empty -m made && git log --format=%s"
    )
    said = await ran(home, workspace, lead_away)
    assert ".git/commondir: Read-only file system" in said
    assert said.endswith("made")
    outside = [git, "-C", str(workspace)]
    common = subprocess.run([*outside, "rev-parse", "--git-common-dir"], capture_output=True, text=True, check=True)
    assert (workspace / common.stdout.strip()).resolve() == workspace / ".git"
    hooks = subprocess.run([*outside, "config", "core.hooksPath"], capture_output=True, text=True, check=False)
    assert hooks.stdout == ""
    assert subprocess.run([*outside, "status", "--short"], check=False).returncode == 0


async def test_files_that_others_act_on_cannot_be_written(home: Path, workspace: Path) -> None:
    (workspace / ".vscode").mkdir()
    (workspace / ".envrc").write_text("export A=1\n")
    said = await ran(home, workspace, "echo x > .vscode/tasks.json; echo x >> .envrc; mv .vscode other; echo x > new")
    assert ".vscode/tasks.json: Read-only file system" in said
    assert ".envrc: Read-only file system" in said
    assert (workspace / ".envrc").read_text() == "export A=1\n"
    assert (workspace / "new").exists()
    assert not any((workspace / ".vscode").iterdir())


async def test_a_link_that_a_command_leaves_opens_nothing_to_the_next_one(home: Path, workspace: Path) -> None:
    await ran(home, workspace, f"mkdir .github; ln -s {home}/.ssh .github/workflows; ln -s {home}/.ssh keys")
    said = await ran(home, workspace, "cat .github/workflows/id keys/id; touch .github/workflows/new keys/new")
    assert "the key" not in said
    assert said.count("No such file or directory") == 4
    assert [path.name for path in (home / ".ssh").iterdir()] == ["id"]
    with pytest.raises(ToolFailure, match="leads out of the workspace"):
        await ran(home, workspace, "true", paths=(OpenPath("keys", is_writable=True),))


async def test_what_a_command_leaves_running_ends_with_it(home: Path, workspace: Path) -> None:
    mark = f"{os.getpid()}.75"
    await ran(home, workspace, f"setsid sleep {mark} & sleep {mark} & echo started")
    eventually(lambda: not running(mark))


async def test_a_cancelled_command_may_end_as_it_should_and_leaves_nothing(home: Path, workspace: Path) -> None:
    mark = f"{os.getpid()}.25"
    command = f"trap 'echo ended > ended; exit' TERM; setsid sleep {mark} & echo started; while :; do sleep 0.05; done"
    seen = asyncio.Event()

    async def watch() -> None:
        running_tool = confined_shell(home, grace_seconds=60)
        context = tool_context(workspace, shell_environment(home))
        approved = Approved(await running_tool.propose({"command": command}, context))
        await running_tool.run({"command": command}, running_context(context, approved, lambda _: seen.set()))

    task = asyncio.create_task(watch())
    await asyncio.wait_for(seen.wait(), 60)
    await eventually_async(lambda: running(mark))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (workspace / "ended").read_text() == "ended\n"
    await eventually_async(lambda: not running(mark))


def running(mark: str) -> list[int]:
    """Return the processes that have `mark` as a word of their command line."""
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if mark in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


PROGRAM = """
import asyncio, sys
from pathlib import Path
from support.sandboxing import confined_shell, shell_environment
from support.tool_calls import success_of, tool_context
home, workspace, mark = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
context = tool_context(workspace, shell_environment(home))
asyncio.run(success_of(confined_shell(home), context, command=f"setsid sleep {mark} & sleep {mark}"))
"""


def test_nothing_survives_a_kill_of_the_agent(home: Path, workspace: Path) -> None:
    mark = f"{os.getpid()}.5"
    tests = Path(__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": str(tests)}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(home), str(workspace), mark], env=environment) as agent:
        try:
            eventually(lambda: len(running(mark)) >= 2, 60)
        finally:
            os.kill(agent.pid, signal.SIGKILL)
    eventually(lambda: not running(mark))


async def test_the_model_is_told_of_the_sandbox(home: Path) -> None:
    plain, confined = RunShellCommand(), confined_shell(home, paths=(OpenPath("~/x", is_writable=True),))
    assert "sandbox" not in plain.description
    assert "only the workspace, ~/x can be changed, there is no network" in confined.description
    assert "the network can be used" in confined_shell(home, has_network=True).description
    assert plain.description in confined.description


async def test_a_command_that_cannot_be_confined_is_not_run(home: Path) -> None:
    with pytest.raises(ToolFailure, match="the workspace is /"):
        await failure_of(confined_shell(home), tool_context(Path("/"), shell_environment(home)), command="touch /tmp/x")
