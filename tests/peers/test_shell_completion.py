"""Commands and options that shells complete, as the help of ``isthmus completion`` says."""

import os
import sys
from pathlib import Path

import pytest

from support.extended import first_of
from support.programs import require
from support.pty_program import pty_program

SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], 'eval "$(isthmus completion bash)"'),
    "zsh": (["-f", "-i"], 'autoload -Uz compinit; compinit -u; eval "$(isthmus completion zsh)"'),
    "fish": (["--no-config", "-i"], "isthmus completion fish > $HOME/isthmus.fish; source $HOME/isthmus.fish"),
}


@pytest.mark.parametrize("shell", first_of(SHELLS))
def test_a_shell_completes_commands_options_and_values(shell: str, tmp_path: Path) -> None:
    arguments, load = SHELLS[shell]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = {**os.environ, "PATH": path, "TERM": "xterm-256color", "PS1": "$ "}
    (tmp_path / "notes.txt").touch()
    with pty_program([require(shell), *arguments], folder=tmp_path, environment=variables, columns=100) as terminal:
        terminal.press(f"{load}; printf 'is %s\\n' loaded\r").wait_for("is loaded")
        for typed, completed in (
            ("isthmus doc", "isthmus doctor"),
            ("isthmus mcp logo", "isthmus mcp logout"),
            ("isthmus --approval-mode auto", "isthmus --approval-mode auto_edit"),
            ("isthmus serve --dr", "isthmus serve --drain-seconds"),
            ("isthmus explain no", "isthmus explain notes.txt"),
            ("isthmus help conn", "isthmus help connect"),
        ):
            terminal.press(f"{typed}\t").wait_for(rf"{completed}( |$)").press("\x15\x0c").wait_until_gone(completed)
