"""The option ``--debug`` of the whole program: output of MCP servers and connection steps, on stderr."""

import os
import sys
from pathlib import Path

import pytest

from support.isolation import IsolatedFolders
from support.isthmus_program import isthmus
from support.loaded_program import LoadedProgram
from support.mcp_hosting import write_servers

SERVER = """\
import os, sys
print("INFO: starting", file=sys.stderr)
print("WARNING: the token", os.environ["NOTES_TOKEN"], "is old", file=sys.stderr, flush=True)
from support import notes_mcp_server
notes_mcp_server.server.run()
"""


@pytest.fixture
def servers(isolated_folders: IsolatedFolders, tmp_path: Path) -> None:
    program = tmp_path / "talkative.py"
    program.write_text(SERVER, encoding="utf-8")
    tests = str(Path(__file__).resolve().parent.parent)
    environment = {"PYTHONPATH": tests, "NOTES_TOKEN": "old-token-123"}
    talkative = {"command": sys.executable, "args": [str(program)], "env": environment}
    write_servers(isolated_folders.home, {"talkative": talkative, "gone": {"command": "/nowhere/at-all"}})


@pytest.mark.requirement("MCP-135", "MCP-136")
@pytest.mark.usefixtures("servers")
def test_debug_says_how_connecting_goes_and_what_servers_write_but_for_info(workspace: Path) -> None:
    told = isthmus("-m", "demo", "--debug", "-p", "/mcp", folder=workspace).stderr
    assert "MCP STDERR (talkative): WARNING: the token *** is old" in told
    assert "INFO: starting" not in told
    assert "MCP server talkative: initialize took " in told
    assert "MCP server talkative: listing 1 tool took " in told
    assert "MCP server gone: initialize failed after " in told
    assert "old-token-123" not in told


@pytest.mark.usefixtures("servers")
def test_without_debug_nothing_of_that_is_said(workspace: Path, loaded_isthmus: LoadedProgram) -> None:
    quiet = loaded_isthmus.run("-m", "demo", "-p", "/mcp", folder=workspace)
    assert "talkative (CONNECTED)" in quiet.stdout
    assert not any(word in quiet.stderr for word in ("STDERR", "DEBUG", "WARNING", "initialize", "old-token-123"))


@pytest.mark.requirement("MCP-135")
@pytest.mark.usefixtures("servers")
def test_beside_a_prompt_the_log_stands_above_what_is_typed(workspace: Path, loaded_isthmus: LoadedProgram) -> None:
    environment = {**os.environ, "TERM": "xterm-256color"}
    with loaded_isthmus.terminal(
        "-m", "demo", "--debug", folder=workspace, environment=environment, columns=150, rows=60
    ) as terminal:
        terminal.wait_for(r"MCP STDERR \(talkative\): WARNING: the token \*\*\* is old", 60)
        terminal.wait_for(r"(?m)^\u203a ?$", 60).press("/mcp\r").wait_for(r"talkative \(CONNECT(ED|ING)\)", 60)
