"""The ways to start a session, as the whole program in a terminal: a prompt as words, -i, -y, --continue."""

import json
from pathlib import Path

import pytest

from support.isthmus_program import InProcess, isthmus
from support.loaded_program import LoadedProgram
from support.session_terminal import PROMPT, Sessions, model_request

SCRIPT = """
name: echo
scenarios:
  - prompt: 'write it'
    replies:
      - call: {name: write_file, arguments: {file_path: new.txt, content: made}}
      - text: Written.
  - prompt: '.'
    replies: [{text: 'You said: {{prompt}}'}]
"""


@pytest.fixture
def sessions(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> Sessions:
    return Sessions(tmp_path, SCRIPT, workspace, loaded_isthmus)


@pytest.mark.parametrize("words", [["explain it"], ["explain", "it"], ["-i", "explain it"]])
def test_a_prompt_begins_a_conversation(sessions: Sessions, words: list[str]) -> None:
    with sessions.terminal(*words) as terminal:
        terminal.wait_for("(?m)^\u203a explain it$").wait_for("You said: explain it").wait_for(PROMPT)
        terminal.press("and this\r").wait_for("You said: and this")


def test_a_first_prompt_may_be_a_command(sessions: Sessions) -> None:
    with sessions.terminal("-i", "/about") as terminal:
        terminal.wait_for("Approval mode: default").wait_for(PROMPT)


def test_yolo_asks_nothing(sessions: Sessions) -> None:
    with sessions.terminal("write it", "-y") as terminal:
        terminal.wait_for("Written.").wait_for(r"(?m)^yolo \u203a ?$")
    assert (sessions.workspace / "new.txt").read_text("utf-8") == "made"


def test_continue_goes_on_with_the_latest_session_of_the_folder(sessions: Sessions, isthmus_here: InProcess) -> None:
    status, _, errors = isthmus_here(*sessions.options, "-p", "remember me")
    assert status == 0, errors
    with sessions.terminal("-c", "go on") as terminal:
        terminal.wait_for("You said: remember me").wait_for("You said: go on").wait_for(PROMPT)
    _, output, _ = isthmus_here(*sessions.options, "--continue", "-p", "/stats")
    assert "prompts: 2" in output


def test_instructions_of_the_command_line_end_the_system_prompt(sessions: Sessions, isthmus_here: InProcess) -> None:
    words = "Answer in one word."
    options = ("--append-system-prompt", words, "--data-dir", str(sessions.data), "-p", "hello")
    system = json.loads(model_request(isthmus_here, *options))[0]
    assert system["role"] in ("system", "developer")
    assert system["content"].rstrip().endswith(words)


def test_a_prompt_as_words_is_answered_once_in_a_pipe(sessions: Sessions) -> None:
    ended = isthmus(*sessions.options, "explain", "it", folder=sessions.workspace, text="")
    assert (ended.returncode, ended.stdout) == (0, "You said: explain it\n")
