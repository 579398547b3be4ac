"""A command in the background of a session in the terminal: asked about, listed, stopped, and gone with kill -9."""

import re
import signal
from pathlib import Path

import psutil
import pytest

from support.loaded_program import LoadedProgram
from support.process_families import is_alive
from support.session_terminal import PROMPT, Sessions
from support.waiting import eventually

SCRIPT = """
name: works
scenarios:
  - prompt: 'start it'
    replies:
      - call:
          name: run_shell_command
          arguments: {command: 'echo listening; exec sleep 1000', is_background: true}
      - text: It runs.
  - prompt: 'look'
    replies:
      - call: {name: list_background_processes, arguments: {}}
      - text: Looked.
"""


@pytest.fixture
def sessions(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> Sessions:
    return Sessions(tmp_path, SCRIPT, workspace, loaded_isthmus)


def test_a_command_runs_beside_the_turns_and_ends_with_the_program(sessions: Sessions) -> None:
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("start it\r").wait_for("Run a command in the background")
        terminal.wait_for("1  Allow once").press("1").wait_for("It runs.").wait_for(PROMPT)
        terminal.press("/shells\r").wait_for(r"\[\d+\] running: echo listening; exec sleep 1000").wait_for(PROMPT)
        found = re.search(r"\[(\d+)\] running", terminal.screen)
        assert found is not None
        process = psutil.Process(int(found[1]))
        terminal.press("look\r").wait_for("Looked.").wait_for(PROMPT)
        assert process.is_running()
        terminal.signal(signal.SIGKILL).wait_for_exit()
        eventually(lambda: not is_alive(process), what="its end")


def test_a_user_stops_a_command_and_a_program_that_ends_ends_the_others(sessions: Sessions) -> None:
    with sessions.terminal("--allowed-tools", "run_shell_command") as terminal:
        terminal.wait_for(PROMPT).press("start it\r").wait_for("It runs.").wait_for(PROMPT)
        terminal.press("start it\r").wait_for(r"It runs\.(?s:.*)It runs\.").wait_for(PROMPT)
        terminal.press("/shells\r").wait_for(r"(?s)running: echo.*running: echo").wait_for(PROMPT)
        first, second = (psutil.Process(int(pid)) for pid in re.findall(r"\[(\d+)\] running", terminal.screen))
        terminal.press(f"/shells stop {first.pid}\r").wait_for(rf"\[{first.pid}\] ended: stopped by the user")
        assert not first.is_running()
        terminal.wait_for(PROMPT).press("\x04")
        assert terminal.wait_for_exit() == 0
        assert not second.is_running()
