"""Isthmus configured as an MCP server of itself: each command that starts servers starts it once at most.

The server is a script, so that nothing but its mark tells what it is. Other forms: tests/unit/mcp_host.
"""

import json
import os
import shlex
import signal
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import click
import grimp
import psutil
import pytest

from command_reference import commands
from isthmus.cli.main import command as root
from isthmus.runtime.server_chain import CHAIN
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS
from support.loaded_program import ISTHMUS as PROGRAM
from support.loaded_program import LoadedProgram
from support.mcp_hosting import write_servers
from support.waiting import eventually

RUNS = {
    "isthmus": ("-p", "hi", "-m", "demo", "--no-ide"),
    "isthmus web": ("--no-open", "-m", "demo"),
    "isthmus serve": ("-m", "demo", "--workspace", "."),
    "isthmus connect": ("http://127.0.0.1:1/",),
    "isthmus acp": ("--in-process", "-m", "demo", "--no-ide"),
    "isthmus mcp doctor": (),
    "isthmus mcp list": (),
    "isthmus mcp login": ("self",),
    "isthmus mcp logout": ("self",),
    "isthmus mcp serve": ("-m", "demo", "--no-ide"),
}
"""Arguments of each command that connects to MCP servers."""
STARTERS = [name for name in RUNS if name.split()[-1] not in ("connect", "login", "logout")]
"""The commands that start servers which are programs."""
WAYS = {"isthmus acp": 2}
"""How often a command is started that answers, but not in MCP: it is asked in both ways in which MCP can begin."""


def test_the_table_has_all_commands_that_can_connect_to_servers() -> None:
    graph = grimp.build_graph("isthmus", cache_dir=None)

    def connects(command: click.Command) -> bool:
        module = getattr(command.callback, "__module__", "")
        return graph.find_shortest_chain(module, "isthmus.mcp_host.connection.connection") is not None

    found = [(name, context.command) for name, context in commands(root, "isthmus")]
    runnable = [(name, item) for name, item in found if not (isinstance(item, click.Group) and item.no_args_is_help)]
    assert sorted(name for name, item in runnable if connects(item)) == sorted(RUNS)


class OwnServer:
    """The script that is configured as a server. It notes its starts, and keeps its error output."""

    def __init__(self, folder: Path, arguments: tuple[str, ...]) -> None:
        self._pids, self.errors = folder / "pids", folder / "errors"
        self.script = folder / "self.sh"
        # A prompt would read the whole input.
        source = "</dev/null" if "-p" in arguments else ""
        self.script.write_text(
            f"#!/bin/sh\necho $$ ${CHAIN} >>{shlex.quote(str(self._pids))}\n"
            f"exec {shlex.join((*ISTHMUS, *arguments))} {source} 2>>{shlex.quote(str(self.errors))}\n"
        )
        self.script.chmod(0o700)

    @property
    def pids(self) -> list[int]:
        return [int(words[0]) for words in self._starts()]

    @property
    def depths(self) -> list[int]:
        """How many servers each start is below the command: 1 if the command itself started it."""
        return [len(words[1].split(",")) for words in self._starts()]

    def _starts(self) -> list[list[str]]:
        lines = self._pids.read_text().splitlines() if self._pids.exists() else []
        return [line.split() for line in lines]

    def is_decided(self) -> bool:
        """Return whether it left itself out, ended, or was started again."""
        depths, pids = self.depths, self.pids
        said = self.errors.read_text() if self.errors.exists() else ""
        return max(depths, default=0) > 1 or (
            bool(pids) and ("is left out" in said or not any(psutil.pid_exists(pid) for pid in pids))
        )


@contextmanager
def running(loaded: LoadedProgram, *arguments: str, folder: Path) -> Generator[tuple[IO[str], IO[str]]]:
    """Start the program, and yield its input and output; end it afterwards."""
    with ExitStack() as stack:
        (inner, given), (taken, outer) = os.pipe(), os.pipe()
        write = stack.enter_context(os.fdopen(given, "w", encoding="utf-8"))
        read = stack.enter_context(os.fdopen(taken, encoding="utf-8"))
        try:
            streams = (inner, outer, 2)
            process = loaded.start(*arguments, streams=streams, folder=folder, environment=os.environ, program=PROGRAM)
        finally:
            os.close(inner)
            os.close(outer)
        stack.callback(process.close)
        try:
            yield write, read
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            finally:
                process.send_signal(signal.SIGKILL)


def ask_over_acp(write: IO[str], read: IO[str], folder: Path) -> None:
    """Ask the agent something over ACP, for which it connects to its servers; return when it has answered."""

    def call(number: int, method: str, **params: Any) -> None:
        write.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        write.flush()

    call(1, "initialize", protocolVersion=1, clientCapabilities={})
    call(2, "session/new", cwd=str(folder), mcpServers=[])
    for line in read:
        message = json.loads(line)
        if message.get("id") == 2:
            prompt = [{"type": "text", "text": "hi"}]
            call(3, "session/prompt", sessionId=message["result"]["sessionId"], prompt=prompt)
        if message.get("id") == 3:
            return


@pytest.mark.parametrize("name", STARTERS)
def test_a_command_that_is_its_own_server_is_started_once_more_at_most(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram, name: str
) -> None:
    words = (*name.split()[1:], *RUNS[name])
    own = OwnServer(tmp_path, words)
    write_servers(isolated_folders.home, {"self": {"command": str(own.script)}})
    with running(loaded_isthmus, *words, folder=workspace) as (write, read):
        if name == "isthmus acp":
            ask_over_acp(write, read, workspace)
        eventually(own.is_decided, 60, what="the server has left itself out")
    assert own.depths == [1] * WAYS.get(name, 1)


def test_an_agent_warns_of_itself_as_a_server_and_uses_another_agent_as_one(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    other = OwnServer(tmp_path, ("mcp", "serve", "-m", "demo", "--no-ide"))
    program = other.script.rename(tmp_path / "isthmus")
    servers = {
        "itself": {"command": "sh", "args": ["-c", "exec isthmus mcp serve"]},
        "other": {"command": str(program), "args": ["mcp", "serve", "-m", "demo"]},
    }
    write_servers(isolated_folders.home, servers)
    ended = loaded_isthmus.run("-p", "hi", "-m", "demo", "--no-ide", "-o", "json", folder=workspace)
    states = {found["name"]: found["status"] for found in json.loads(ended.stdout)["mcp_servers"]}
    assert states == {"itself": "disabled", "other": "connected"}
    assert "MCP server itself is left out: it is this agent itself" in ended.stderr
    assert "isthmus mcp disable itself" in ended.stderr
    assert "without the tools" not in ended.stderr
    said = other.errors.read_text()
    assert "itself is left out: it is Isthmus" in said
    assert "other is left out: this process was started as this server" in said
    assert len(other.pids) == 1
