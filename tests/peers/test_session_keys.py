"""Keys and text while the agent works, and the approval mode of a session: the whole program in a terminal."""

import json
import re
from pathlib import Path

import pytest

from support.isolation import IsolatedFolders
from support.isthmus_program import InProcess
from support.loaded_program import LoadedProgram
from support.pty_program import PtyProgram
from support.session_terminal import PROMPT, Sessions

SCRIPT = """
name: works
scenarios:
  - prompt: 'work'
    replies:
      - call: {name: run_shell_command, arguments: {command: 'echo began; until [ -e go ]; do sleep 0.05; done'}}
      - text: All done.
  - prompt: 'write it'
    replies:
      - call: {name: write_file, arguments: {file_path: new.txt, content: made}}
      - alternatives:
          - when: result failed
            text: It was refused.
          - text: Written.
  - prompt: '.'
    replies: [{text: 'You said: {{prompt}}'}]
"""
CHOICES = r"1  Allow once"


@pytest.fixture
def sessions(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> Sessions:
    return Sessions(tmp_path, SCRIPT, workspace, loaded_isthmus)


def working(terminal: PtyProgram) -> PtyProgram:
    """Wait until the turn of the prompt `work` runs its command."""
    return terminal.wait_for(r"(?m)^(yolo )?\u203a ?$").press("work\r").wait_for(r"(?m)^\s+began$")


def test_escape_interrupts_the_turn_and_not_the_program(sessions: Sessions) -> None:
    with sessions.terminal("-y") as terminal:
        working(terminal).press("\x1b").wait_for("\u2013 cancelled").wait_for(r"(?m)^yolo \u203a ?$")
        terminal.press("hello\r").wait_for("You said: hello")


def test_escape_at_a_question_cancels_the_turn(sessions: Sessions) -> None:
    with sessions.terminal("write it") as terminal:
        terminal.wait_for(CHOICES).press("\x1b").wait_for("\u2013 cancelled").wait_for(PROMPT)
    assert not (sessions.workspace / "new.txt").exists()


def test_tab_sends_what_was_typed_for_the_work_under_way(sessions: Sessions) -> None:
    with sessions.terminal("--allowed-tools", "run_shell_command") as terminal:
        working(terminal).press("look at b").wait_for(r"(?m)^\u203a look at b_$").press("\t")
        terminal.wait_for(r"(?m)^\u203a look at b  sent$")
        (sessions.workspace / "go").touch()
        # The model's next message is about it; the answer to the first prompt does not come.
        terminal.wait_for(r"(?m)^\u203a look at b$").wait_for("You said: look at b").wait_for(PROMPT)
        assert "All done." not in terminal.screen


def test_messages_typed_while_it_works_are_visible_and_sent_when_the_turn_ends(sessions: Sessions) -> None:
    with sessions.terminal("--allowed-tools", "run_shell_command") as terminal:
        working(terminal).press("and then\r").wait_for(r"(?m)^\u203a and then  queued$")
        terminal.press("more still").wait_for(r"(?m)^\u203a more still_$")
        (sessions.workspace / "go").touch()
        terminal.wait_for("All done.").wait_for(r"(?m)^\u203a and then$").wait_for("You said: and then")
        # What was not sent yet can be edited at the next prompt.
        terminal.wait_for(r"(?m)^\u203a more still$").press(" to say\r").wait_for("You said: more still to say")


def test_an_interrupted_turn_gives_the_waiting_messages_back(sessions: Sessions) -> None:
    with sessions.terminal("--allowed-tools", "run_shell_command") as terminal:
        working(terminal).press("one\rtwo\r").wait_for(r"(?m)^\u203a two  queued$").press("\x1b")
        terminal.wait_for("\u2013 cancelled").wait_for(r"(?m)^\u203a one\n  two$")
        terminal.press("\r").wait_for("You said: one")


def test_the_last_waiting_message_can_be_edited(sessions: Sessions) -> None:
    with sessions.terminal("--allowed-tools", "run_shell_command") as terminal:
        working(terminal).press("onw\r").wait_for("onw  queued").press("\x1b[A").wait_for(r"(?m)^\u203a onw_$")
        terminal.press("\x7fe\r").wait_for("one  queued")


def test_shift_tab_goes_through_the_modes_but_yolo(sessions: Sessions) -> None:
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT)
        for mark in ("auto_edit ", "plan ", "", "auto_edit "):
            terminal.press("\x1b[Z").wait_for(rf"(?m)^{mark}\u203a ?$")
        terminal.press("write it\r").wait_for("Written.")
    assert (sessions.workspace / "new.txt").read_text("utf-8") == "made"


def test_a_mode_that_is_chosen_while_it_works_counts_from_the_next_message(sessions: Sessions) -> None:
    with sessions.terminal("--allowed-tools", "run_shell_command") as terminal:
        working(terminal).press("\x1b[Z").wait_for("from the next message on: auto_edit")
        (sessions.workspace / "go").touch()
        terminal.wait_for("All done.").wait_for(r"(?m)^auto_edit \u203a ?$").press("write it\r").wait_for("Written.")


def test_mode_changes_the_approval_mode_of_the_session(sessions: Sessions, isthmus_here: InProcess) -> None:
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("hello\r").wait_for("You said: hello").wait_for(PROMPT)
        terminal.press("/mode plan\r").wait_for(r"(?m)^plan \u203a ?$")
        terminal.press("write it\r").wait_for("It was refused.").wait_for(r"(?m)^plan \u203a ?$")
        terminal.press("/mode\r").wait_for(r"(?m)^\* plan +only reads$")
        terminal.press("/mode yolo\r").wait_for(r"(?m)^yolo \u203a ?$").press("write it\r").wait_for("Written.")
        terminal.press("/mode other\r").wait_for("Unknown mode other; expected one of default, auto_edit, plan, yolo")
    # Another start is another choice: the session does not go on in yolo by itself.
    (sessions.workspace / "new.txt").unlink()
    _, output, _ = isthmus_here(*sessions.options, "-c", "-p", "write it")
    assert "It was refused." in output
    with sessions.terminal("-c", "write it") as terminal:
        terminal.wait_for(CHOICES)


def test_a_mode_that_the_settings_refuse_is_not_chosen(sessions: Sessions, isolated_folders: IsolatedFolders) -> None:
    settings = isolated_folders.home / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"security": {"disableYoloMode": True}}), "utf-8")
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("/mode yolo\r").wait_for("The mode stays default: .*yolo is refused")
        terminal.press("write it\r").wait_for(CHOICES)


def test_one_line_below_the_prompt_tells_mode_model_context_and_branch(sessions: Sessions) -> None:
    (sessions.workspace / ".git").mkdir()
    (sessions.workspace / ".git" / "HEAD").write_text("ref: refs/heads/topic\n", "utf-8")
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).wait_for(r"(?m)^default · script · topic$").press("hello\r")
        terminal.wait_for("You said: hello").wait_for(r"(?m)^default · works · context \d+% used · topic")
        terminal.press("\x1b[Z").wait_for(r"(?m)^auto_edit · works ·")
        # The line belongs to the prompt: nothing of it stays in the scrollback.
        assert len(re.findall(r"· works ·", terminal.screen)) == 1
