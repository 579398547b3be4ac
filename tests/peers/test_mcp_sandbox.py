"""MCP servers in the real sandbox: forbidden and allowed actions, and servers of npm and PyPI at work in it."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from isthmus.mcp_host.connection.connection_context import McpTimeouts
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.curious_servers import Asked, curious, surrounding
from support.mcp_hosting import hosting, status_when
from support.programs import node_package, require
from support.sandboxing import machine_paths
from support.tool_calls import failure_of, tool_context
from support.waiting import eventually, eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "user"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id").write_text("the key")
    return folder


@pytest.mark.requirement("MCP-133", "MCP-134")
async def test_a_server_in_the_sandbox_can_do_its_work_and_no_harm(home: Path, workspace: Path, tmp_path: Path) -> None:
    (data := tmp_path / "data").mkdir()
    (data / "a").write_text("content")
    mark = Path("/tmp/isthmus-mcp-sandbox-test")
    environment = surrounding(home, TOKEN_OF_MINE="t", LETTER="l")
    with (
        subprocess.Popen(["sleep", "600"]) as outside,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        try:
            server = {**curious(paths=(f"{data}:ro",), environment=["LETTER"]), "env": {"OWN": "o"}}
            async with hosting(home, {"curious": server}, environment=environment) as host:
                ask = Asked(host, workspace)
                assert await ask("write", path=str(workspace / "made"), text="x") == "written"
                assert await ask("write", path=str(tmp_path / "made"), text="x") == "written"  # an empty folder
                assert await ask("write", path="/etc/isthmus-was-here", text="x") == "no: Read-only file system"
                assert await ask("write", path=str(home / "made"), text="x") == "written"  # its own home
                assert await ask("write", path=str(mark), text="x") == "written"
                assert await ask("read", path=str(mark)) == "x"
                assert await ask("read", path=str(home / ".ssh" / "id")) == "no: No such file or directory"
                assert (
                    await ask("read", path=str(home / ".gemini" / "settings.json")) == "no: No such file or directory"
                )
                assert await ask("read", path=str(data / "a")) == "content"
                assert await ask("write", path=str(data / "b"), text="x") == "no: Read-only file system"
                assert await ask("connect", port=listener.getsockname()[1]) == "no: Connection refused"
                assert await ask("end", pid=outside.pid) == "no: No such process"
                names = set((await ask("variables")).split())
                assert {"OWN", "LETTER", "HOME", "PATH", "TMPDIR"} <= names
                assert "TOKEN_OF_MINE" not in names
            assert outside.poll() is None
        finally:
            outside.kill()
    assert (workspace / "made").read_text() == "x"
    assert not mark.exists()
    assert not (tmp_path / "made").exists()
    assert sorted(path.name for path in home.iterdir()) == [".gemini", ".ssh"]


@pytest.mark.requirement("MCP-134")
async def test_a_server_gets_the_network_the_paths_and_the_variables_that_it_is_given(
    home: Path, workspace: Path
) -> None:
    (home / "cache").mkdir()
    opened = curious(paths=("~/cache",), network=True, environment={"WHERE": "${PLACE}/here"})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with hosting(home, {"curious": opened}, environment=surrounding(home, PLACE="over")) as host:
            ask = Asked(host, workspace)
            assert await ask("connect", port=listener.getsockname()[1]) == "connected"
            assert await ask("write", path=str(home / "cache" / "made"), text="kept") == "written"
            assert "WHERE" in (await ask("variables")).split()
            status = await status_when(host, ToolScope(workspace), "curious", ServerState.CONNECTED)
    assert (home / "cache" / "made").read_text() == "kept"
    told = "\n".join(status.summary)
    assert "Sandbox: bubblewrap" in told
    assert "~/cache" in told
    assert "with the network; gets WHERE" in told
    assert status.problem is None


@pytest.mark.requirement("MCP-133")
async def test_servers_of_npm_and_pypi_work_in_the_sandbox(home: Path, workspace: Path) -> None:
    (workspace / "a.txt").write_text("content of a")
    git = [str(require("git")), "-C", str(workspace)]
    subprocess.run([*git, "init", "-q"], check=True)
    files = node_package("@modelcontextprotocol/server-filesystem") / "dist" / "index.js"
    sandbox = {"paths": machine_paths()}
    servers: dict[str, Any] = {
        "files": {"command": str(require("node")), "args": [str(files), str(workspace)], "sandbox": sandbox},
        "memory": {
            "command": str(require("node")),
            "args": [str(node_package("@modelcontextprotocol/server-memory") / "dist" / "index.js")],
            "sandbox": sandbox,
            "env": {"MEMORY_FILE_PATH": "/etc/isthmus-was-here"},
        },
        "git": {
            "command": str(require("mcp-server-git")),
            "args": ["--repository", str(workspace)],
            "sandbox": {**sandbox, "environment": {"GIT_AUTHOR_NAME": "me", "GIT_AUTHOR_EMAIL": "e"}},
            "env": {"GIT_COMMITTER_NAME": "me", "GIT_COMMITTER_EMAIL": "e"},
        },
    }
    async with hosting(home, servers, environment=surrounding(home)) as host:
        files_of, git_of = Asked(host, workspace, "files"), Asked(host, workspace, "git")
        assert "content of a" in await files_of("read_text_file", path=str(workspace / "a.txt"))
        assert "Successfully wrote" in await files_of("write_file", path=str(workspace / "b.txt"), content="b")
        await status_when(host, ToolScope(workspace), "memory", ServerState.CONNECTED)
        create = (await host.tools(ToolScope(workspace))).tools["create_entities"]
        entity: dict[str, object] = {"name": "a", "entityType": "b", "observations": []}
        refused = await failure_of(create, tool_context(workspace), entities=[entity])
        assert "EROFS: read-only file system, open '/etc/isthmus-was-here" in refused.error.message
        await git_of("git_add", repo_path=str(workspace), files=["a.txt"])
        await git_of("git_commit", repo_path=str(workspace), message="first")
        assert "first" in await git_of("git_log", repo_path=str(workspace))
    said = subprocess.run([*git, "log", "--format=%an %s"], check=True, capture_output=True, text=True).stdout
    assert said == "me first\n"


async def test_a_server_in_the_sandbox_that_dies_tells_its_exit_code_and_its_last_words(
    home: Path, workspace: Path
) -> None:
    async with hosting(home, {"curious": curious("3")}, environment=surrounding(home)) as host:
        scope = ToolScope(workspace)
        await host.tools(scope)
        status = await status_when(host, scope, "curious", ServerState.DISCONNECTED)
    assert "it ended with exit code 3 before it answered initialize" in str(status.problem)
    assert "something is missing" in str(status.problem)


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ({"command": "no-such-program", "sandbox": True}, "the program 'no-such-program' was not found"),
        ({"command": "true", "sandbox": {"paths": ["~/gone"]}}, "sandbox.paths: ~/gone does not exist"),
        ({"command": "HOME/tool", "sandbox": True}, "is not in the sandbox"),
    ],
)  # fmt: skip
async def test_a_server_that_cannot_be_in_the_sandbox_says_what_to_do(
    home: Path, workspace: Path, server: dict[str, Any], problem: str
) -> None:
    (home / "tool").write_text("#!/bin/sh\n")
    (home / "tool").chmod(0o755)
    server = {**server, "command": server["command"].replace("HOME", str(home))}
    async with hosting(home, {"one": server}, environment=surrounding(home)) as host:
        scope = ToolScope(workspace)
        await host.tools(scope)
        status = await status_when(host, scope, "one", ServerState.DISCONNECTED)
    assert problem in str(status.problem)


async def test_closing_lets_a_server_end_as_it_should_and_leaves_nothing(home: Path, workspace: Path) -> None:
    mark, timeouts = f"{os.getpid()}.125", McpTimeouts(close_seconds=60, exit_seconds=(60, 1))
    async with hosting(home, {"curious": curious()}, environment=surrounding(home), timeouts=timeouts) as host:
        await Asked(host, workspace)("leave_behind", mark=mark)
        # A program has its arguments only a moment after it was started.
        await eventually_async(lambda: len(running(mark)) == 2)
    assert (workspace / "ended").read_text() == "as it should"
    await eventually_async(lambda: not running(mark))


HOST = """
import asyncio, sys
from pathlib import Path
from support.curious_servers import Asked, curious, surrounding
from support.curious_servers import Asked, curious, surrounding
from support.mcp_hosting import hosting
async def main():
    home, workspace = Path(sys.argv[1]), Path(sys.argv[2])
    async with hosting(home, {"curious": curious()}, environment=surrounding(home)) as host:
        await Asked(host, workspace)("leave_behind", mark=sys.argv[3])
        await asyncio.sleep(600)
asyncio.run(main())
"""


def test_nothing_of_a_server_survives_a_kill_of_the_host(home: Path, workspace: Path) -> None:
    mark = f"{os.getpid()}.375"
    command = [sys.executable, "-c", HOST, str(home), str(workspace), mark]
    tests = Path(__file__).resolve().parent.parent
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(tests)}) as host:
        try:
            eventually(lambda: len(running(mark)) == 2, 60)
        finally:
            os.kill(host.pid, signal.SIGKILL)
    eventually(lambda: not running(mark))


def running(mark: str) -> list[int]:
    """Return the programs ``sleep`` that were started with `mark`."""
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if process.cmdline() == ["sleep", mark] and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.mark.requirement("MCP-133")
async def test_without_bubblewrap_it_is_said_loudly_that_there_is_no_sandbox(
    home: Path, workspace: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (empty := tmp_path / "empty").mkdir()
    environment = {**os.environ, "HOME": str(home), "PATH": str(empty)}
    servers = {"curious": curious(), "strict": curious(require=True)}
    async with hosting(home, servers, environment=environment) as host:
        scope = ToolScope(workspace)
        await host.tools(scope)
        loose = await status_when(host, scope, "curious", ServerState.CONNECTED)
        strict = await status_when(host, scope, "strict", ServerState.DISCONNECTED)
    assert any(line.startswith("Sandbox: NONE, though it is configured: bubblewrap") for line in loose.summary)
    assert "apt install bubblewrap" in "\n".join(loose.summary)
    assert "MCP server curious runs WITHOUT its sandbox" in caplog.text
    assert "it was not started: it requires a sandbox, which does not work: bubblewrap (bwrap) is not on PATH" in str(
        strict.problem
    )
