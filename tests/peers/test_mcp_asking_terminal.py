"""A server's questions to a person in the terminal: a form filled in with $EDITOR, and choices."""

import os
import sys
from pathlib import Path

import pytest

from support.isthmus_program import ISTHMUS
from support.mcp_hosting import write_servers
from support.programs import node_package, require
from support.pty_program import pty_program
from support.surroundings import Surroundings

ASKING = Path(__file__).resolve().parent.parent / "support" / "asking_mcp_server.py"
SCRIPT = """
name: asks
scenarios:
  - prompt: 'form'
    replies: [{call: {name: trigger-elicitation-request, arguments: {}}}, {text: All done.}]
  - prompt: 'agree'
    replies: [{call: {name: agree, arguments: {}}}, {text: All done.}]
"""
PROMPT = r"(?m)^\u203a ?$"
EDITOR = """
import pathlib, sys
path = pathlib.Path(sys.argv[1])
path.write_text(path.read_text().replace('"name": null', '"name": "Ada Lovelace"'))
"""


@pytest.fixture
def environment(surroundings: Surroundings, tmp_path: Path) -> dict[str, str]:
    everything = node_package("@modelcontextprotocol/server-everything") / "dist" / "index.js"
    servers = {
        "everything": {"command": str(require("node")), "args": [str(everything), "stdio"], "trust": True},
        "asking": {"command": sys.executable, "args": [str(ASKING), str(tmp_path / "log")], "trust": True},
    }
    write_servers(surroundings.home, servers)
    (tmp_path / "editor.py").write_text(EDITOR, encoding="utf-8")
    (tmp_path / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    return {**os.environ, "TERM": "xterm-256color", "EDITOR": f"{sys.executable} {tmp_path / 'editor.py'}"}


def test_a_form_is_filled_in_with_the_editor_and_a_choice_is_a_number(
    environment: dict[str, str], tmp_path: Path, workspace: Path
) -> None:
    command = [*ISTHMUS, "-m", f"scripted:{tmp_path / 'script.yaml'}", "--no-ide", "--data-dir", str(tmp_path / "data")]
    with pty_program(command, folder=workspace, environment=environment, columns=150, rows=120) as terminal:
        terminal.wait_for(PROMPT, 40).press("form\r").wait_for(r"e\s+Edit first", 40)
        assert "// > Please provide inputs for the following fields:" in terminal.screen
        assert '"name": null' in terminal.screen
        terminal.press("e").wait_for(r"e\s+Edit again", 40)
        assert '"name": "Ada Lovelace"' in terminal.screen
        terminal.press("1").wait_for(r"Name: Ada Lovelace", 40).wait_for(r"All done", 40)
        terminal.wait_for(PROMPT, 40).press("agree\r").wait_for(r"> Do you agree\?", 40).wait_for(r"2\s+No", 40)
        terminal.press("2").wait_for(r"accept \{'agree': False\}", 40)
    assert not list(workspace.glob("*.json"))
