"""A server's questions to a user in the terminal: a form filled in with $EDITOR or line by line, and choices."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from support.isolation import IsolatedFolders
from support.loaded_program import LoadedProgram
from support.mcp_hosting import write_servers
from support.programs import node_package, require
from support.pty_program import PtyProgram
from support.serve_program import serve_program
from support.waiting import eventually

ASKING = Path(__file__).resolve().parent.parent / "support" / "asking_mcp_server.py"
SCRIPT = """
name: asks
scenarios:
  - prompt: 'form'
    replies: [{call: {name: trigger-elicitation-request, arguments: {}}}, {text: All done.}]
  - prompt: 'agree'
    replies: [{call: {name: agree, arguments: {}}}, {text: All done.}]
"""
SECONDS = 60
PROMPT = r"(?m)^\u203a ?$"
EDITOR = """
import pathlib, sys
path = pathlib.Path(sys.argv[1])
path.write_text(path.read_text().replace('"name": null', '"name": "Ada Lovelace"'))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "editor.py").write_text(EDITOR, encoding="utf-8")
    (tmp_path / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    return {**os.environ, "TERM": "xterm-256color", "EDITOR": f"{sys.executable} {tmp_path / 'editor.py'}"}


@pytest.fixture
def everything(isolated_folders: IsolatedFolders) -> None:
    program = node_package("@modelcontextprotocol/server-everything") / "dist" / "index.js"
    server = {"command": str(require("node")), "args": [str(program), "stdio"], "trust": True}
    write_servers(isolated_folders.home, {"server": server})


@pytest.fixture
def asking(isolated_folders: IsolatedFolders, tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": [str(ASKING), str(tmp_path / "log")], "trust": True}
    write_servers(isolated_folders.home, {"server": server})


def connected(terminal: PtyProgram) -> PtyProgram:
    """Wait at the prompt until the server is connected: the first turn waits only a few seconds for it."""
    terminal.wait_for(PROMPT, SECONDS)

    def is_connected() -> bool:
        before = terminal.received.count(b"Discovery State")
        terminal.press("/mcp\r")
        eventually(lambda: terminal.received.count(b"Discovery State") > before, SECONDS)
        terminal.wait_for(PROMPT, SECONDS)
        return "server (CONNECTED)" in terminal.screen

    eventually(is_connected, SECONDS)
    return terminal


@pytest.mark.usefixtures("everything")
def test_a_form_is_filled_in_with_the_editor(
    environment: dict[str, str], tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    command = ["-m", f"scripted:{tmp_path / 'script.yaml'}", "--no-ide", "--data-dir", str(tmp_path / "data")]
    with loaded_isthmus.terminal(
        *command, folder=workspace, environment=environment, columns=150, rows=200
    ) as terminal:
        connected(terminal).press("form\r").wait_for(r"e\s+Edit first", SECONDS)
        assert "// > Please provide inputs for the following fields:" in terminal.screen
        assert '"name": null' in terminal.screen
        terminal.press("e").wait_for(r"e\s+Edit again", SECONDS)
        assert '"name": "Ada Lovelace"' in terminal.screen
        terminal.press("1").wait_for(r"Name: Ada Lovelace", SECONDS).wait_for(r"All done", SECONDS)
    assert not list(workspace.glob("*.json"))


def fill_in(terminal: PtyProgram) -> None:
    """Answer the form of server-everything, with mistakes."""
    terminal.press("form\r").wait_for(r"f\s+Fill in", SECONDS)
    terminal.press("f").wait_for(r"1 of \d+: String \(required\)\n\s+Your full, legal name", SECONDS)
    terminal.press("\r").wait_for("A value is required", SECONDS)
    terminal.press("\x03").wait_for("Nothing was changed", SECONDS).wait_for(r"f\s+Fill in", SECONDS)
    terminal.press("f").wait_for("1 of ", SECONDS).press("Ada Lovelace\r").wait_for(r"2 of \d+: Boolean", SECONDS)
    terminal.press("yes\r").wait_for(r"String with default \[It was a dark", SECONDS)
    terminal.press("\r").wait_for("4 of ", SECONDS).press("ada\r").wait_for("'ada' is not an e-mail address", SECONDS)
    terminal.press("ada@example.org\r").wait_for("5 of ", SECONDS).press("\r").wait_for("6 of ", SECONDS)
    terminal.press("1815-12-10\r").wait_for(r"Integer \[42\]", SECONDS).press("101\r").wait_for(
        "101 is greater than the maximum", SECONDS
    )
    terminal.press("7\r").wait_for("8 of ", SECONDS).press("-\r").wait_for(r"3\s+Joey", SECONDS)
    terminal.press("3\r").wait_for(r"Instruments|instruments", SECONDS).press("1, Drums\r").wait_for("11 of ", SECONDS)
    number = 11
    while not re.search(r"f\s+Fill in again", terminal.screen):
        terminal.press("\r")
        number += 1
        terminal.wait_for(rf"{number} of |f\s+Fill in again", SECONDS)
    shown = terminal.screen
    for line in ('"name": "Ada Lovelace"', '"check": true', '"email": "ada@example.org"', '"integer": 7', '"Drums"'):
        assert line in shown
    assert '"homepage": null' in shown
    terminal.press("1").wait_for(r"Send, with your edits", SECONDS).wait_for(r"Name: Ada Lovelace", SECONDS)
    terminal.wait_for(r"All done", SECONDS)


@pytest.mark.usefixtures("everything")
def test_a_form_is_filled_in_line_by_line(
    environment: dict[str, str], tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    command = ["-m", f"scripted:{tmp_path / 'script.yaml'}", "--no-ide", "--data-dir", str(tmp_path / "data")]
    with loaded_isthmus.terminal(
        *command, folder=workspace, environment=environment, columns=150, rows=200
    ) as terminal:
        fill_in(connected(terminal))


@pytest.mark.usefixtures("asking")
def test_a_choice_is_a_number_and_leaving_at_one_closes_it_and_the_turn_goes_on(
    environment: dict[str, str], tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    command = ["-m", f"scripted:{tmp_path / 'script.yaml'}", "--no-ide", "--data-dir", str(tmp_path / "data")]
    options: dict[str, Any] = {"folder": workspace, "environment": environment, "columns": 150, "rows": 200}
    with loaded_isthmus.terminal(*command, **options) as terminal:
        connected(terminal).press("agree\r").wait_for(r"> Do you agree\?", SECONDS).wait_for(r"2\s+No", SECONDS)
        terminal.press("2").wait_for(r"accept \{'agree': False\}", SECONDS).wait_for(r"All done", SECONDS)
        terminal.wait_for(PROMPT, SECONDS).press("agree\r").wait_for(r"2\s+No", SECONDS)
        terminal.press("\x04").wait_for("asks the question again if the server still waits", SECONDS)
        assert terminal.wait_for_exit(SECONDS) == 0
    with loaded_isthmus.terminal(*command, "--resume", "latest", **options) as terminal:
        terminal.wait_for("interrupted", SECONDS).wait_for("All done", SECONDS).wait_for(PROMPT, SECONDS)
        assert not re.search(r"2\s+No", terminal.screen)


@pytest.mark.anyio
@pytest.mark.usefixtures("everything")
async def test_a_form_is_filled_in_line_by_line_of_an_agent_that_is_elsewhere(
    environment: dict[str, str], tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with serve_program(
        tmp_path, workspace, script=SCRIPT, environment=environment, loaded=loaded_isthmus
    ) as served:
        command = ["connect", served.url]
        variables = {**environment, "ISTHMUS_A2A_TOKEN": served.token}
        with loaded_isthmus.terminal(
            *command, folder=workspace, environment=variables, columns=150, rows=120
        ) as terminal:
            await asyncio.to_thread(fill_in, terminal.wait_for("Connected to", SECONDS).wait_for(PROMPT, SECONDS))
