"""A subagent in the terminal: its question, its progress, kill -9 while it waits, and the answer after it."""

import signal
from pathlib import Path

import pytest

from support.loaded_program import LoadedProgram
from support.session_terminal import PROMPT, Sessions

SCRIPT = """
name: delegates
scenarios:
  - prompt: '\\Ahand it over'
    replies:
      - text: I give it to the generalist.
        call: {name: invoke_agent, arguments: {agent_name: generalist, prompt: write the note}}
      - text: The generalist has done it.
  - prompt: '\\Awrite the note'
    replies:
      - call: {name: list_directory, arguments: {dir_path: '{{workspace}}'}}
      - call: {name: write_file, arguments: {file_path: '{{workspace}}/note.txt', content: "A note.\\n"}}
      - text: I wrote note.txt.
"""


@pytest.fixture
def sessions(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> Sessions:
    return Sessions(tmp_path, SCRIPT, workspace, loaded_isthmus)


def test_the_question_of_a_subagent_outlives_the_program(sessions: Sessions) -> None:
    note = sessions.workspace / "note.txt"
    with sessions.terminal(columns=100) as terminal:
        terminal.wait_for(PROMPT).press("hand it over\r").wait_for("1  Allow once")
        assert "asked by the subagent generalist" in terminal.screen
        assert "✓ list_directory" not in terminal.screen
        terminal.signal(signal.SIGKILL).wait_for_exit()
    assert not note.exists()
    with sessions.terminal("--continue", columns=100) as terminal:
        terminal.wait_for("1  Allow once").press("1").wait_for("The generalist has done it.").wait_for(PROMPT)
        assert note.read_text("utf-8") == "A note.\n"
        terminal.press("/tasks\r").wait_for("completed .* generalist: write the note").wait_for(PROMPT)
        terminal.press("/stats\r").wait_for("tool calls: 1 succeeded, 0 failed").wait_for(PROMPT)
        terminal.press("/age").wait_for("/agents  List the subagents")  # While it is typed.
        terminal.press("nts\r").wait_for("- codebase_investigator: ").wait_for(PROMPT)
