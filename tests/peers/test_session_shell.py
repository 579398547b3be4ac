"""Commands that the user runs with ``!``, and words with a rejection: the whole program in a terminal."""

from pathlib import Path

import pytest

from support.isthmus_program import InProcess
from support.loaded_program import LoadedProgram
from support.session_terminal import PROMPT, Sessions, model_request

SCRIPT = """
name: shell
scenarios:
  - prompt: 'write it'
    replies:
      - call: {name: write_file, arguments: {file_path: new.txt, content: made}}
      - text: Something was decided.
  - prompt: 'I rejected the call of write_file. (?P<why>.*)'
    replies: [{text: 'Then I will {{why}}.'}]
  - prompt: '.'
    replies: [{text: 'You said: {{prompt}}'}]
"""
CHOICES = r"1  Allow once"


@pytest.fixture
def sessions(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> Sessions:
    return Sessions(tmp_path, SCRIPT, workspace, loaded_isthmus)


def test_a_command_of_the_user_runs_unasked_and_is_shown_whole(sessions: Sessions) -> None:
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("!seq 101 120; touch ran\r").wait_for(r"(?m)^\s+101$").wait_for(r"(?m)^\s+120$")
        terminal.wait_for(PROMPT)
        assert "Allow once" not in terminal.screen
        terminal.press("and now\r").wait_for("You said: ")
    assert (sessions.workspace / "ran").exists()


def test_the_output_is_part_of_the_next_message_and_no_request_is_made(
    sessions: Sessions, isthmus_here: InProcess
) -> None:
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("!echo seen-$((40+2))\r").wait_for("seen-42").wait_for(PROMPT)
        terminal.press("/stats\r").wait_for("tool calls: 1 succeeded").wait_for(PROMPT)
        assert "1 request" not in terminal.screen
    options = ("--data-dir", str(sessions.data), "-c", "-p", "what did it print?")
    assert "seen-42" in model_request(isthmus_here, *options)


def test_a_command_runs_in_plan_mode_which_stays(sessions: Sessions) -> None:
    with sessions.terminal("--approval-mode", "plan") as terminal:
        terminal.wait_for(r"(?m)^plan \u203a ?$").press("!touch ran\r")
        terminal.wait_for("✓ run_shell_command").wait_for(r"(?m)^plan \u203a ?$").press("write it\r")
        terminal.wait_for("Something was decided.")
    assert (sessions.workspace / "ran").exists()
    assert not (sessions.workspace / "new.txt").exists()


def test_shell_mode_takes_every_line_as_a_command(sessions: Sessions) -> None:
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("!\r").wait_for(r"(?m)^shell \u203a ?$")
        terminal.press("echo one; touch one\r").wait_for("✓ run_shell_command").wait_for(r"(?m)^shell \u203a ?$")
        terminal.press("!\r").wait_for(PROMPT).press("hello\r").wait_for("You said: ")
    assert (sessions.workspace / "one").exists()


def test_without_a_user_the_policy_decides_on_the_command(sessions: Sessions, isthmus_here: InProcess) -> None:
    status, _, _ = isthmus_here(*sessions.options, "-p", "/shell touch ran")
    assert status != 0
    assert not (sessions.workspace / "ran").exists()
    status, _, errors = isthmus_here(*sessions.options, "-y", "-p", "/shell touch ran")
    assert status == 0, errors
    assert (sessions.workspace / "ran").exists()


def test_a_call_is_rejected_with_words_that_the_model_gets(sessions: Sessions) -> None:
    with sessions.terminal("write it") as terminal:
        terminal.wait_for(CHOICES).press("t").wait_for("tell it:").press("use another name\r")
        terminal.wait_for("Reject: use another name").wait_for("Then I will use another name.").wait_for(PROMPT)
        assert "Something was decided." not in terminal.screen
    assert not (sessions.workspace / "new.txt").exists()


def test_an_empty_reason_leads_back_to_the_question(sessions: Sessions) -> None:
    with sessions.terminal("write it") as terminal:
        terminal.wait_for(CHOICES).press("t").wait_for("tell it:").press("\r").wait_for(CHOICES).press("1")
        terminal.wait_for("Something was decided.")
    assert (sessions.workspace / "new.txt").exists()
