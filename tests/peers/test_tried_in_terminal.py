"""Commands that are tried first, in the whole program in a terminal, with the setting of the user's own file."""

import json
import os
from pathlib import Path

from support.isolation import IsolatedFolders
from support.loaded_program import LoadedProgram
from support.sandboxing import with_bubblewrap
from support.session_terminal import PROMPT, Sessions

SCRIPT = """
name: tried
scenarios:
  - prompt: 'build it'
    replies:
      - call: {name: run_shell_command, arguments: {command: 'mkdir -p build; echo out > build/out; echo built'}}
      - text: The build is done.
  - prompt: 'write it'
    replies:
      - call: {name: run_shell_command, arguments: {command: 'echo new line > made.txt'}}
      - text: The file is written.
"""


def test_a_build_is_not_asked_about_and_changes_are_shown_before_they_are_made(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram, isolated_folders: IsolatedFolders
) -> None:
    settings = isolated_folders.home / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"isthmus": {"approval": {"allowByEffect": True}}}), "utf-8")
    (workspace / ".gitignore").write_text("build/\n", "utf-8")
    sessions = Sessions(tmp_path, SCRIPT, workspace, loaded_isthmus)
    path = f"{with_bubblewrap()['PATH'].split(os.pathsep)[0]}{os.pathsep}/usr/bin{os.pathsep}/bin"
    with sessions.terminal(environment={"PATH": path}) as terminal:
        terminal.wait_for(PROMPT).press("build it\r").wait_for("The build is done.").wait_for(PROMPT)
        assert "Allow" not in terminal.screen
        assert (workspace / "build" / "out").read_text() == "out\n"
        terminal.press("write it\r").wait_for("Keep what a command changed").wait_for("Allow these changes")
        assert "created made.txt (1 line)" in terminal.screen
        assert "+new line" in terminal.screen
        assert not (workspace / "made.txt").exists()
        terminal.press("1").wait_for("The file is written.")
    assert (workspace / "made.txt").read_text() == "new line\n"
