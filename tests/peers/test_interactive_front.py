"""The interactive front in a real pseudo-terminal, on a scripted agent."""

import json
import os
import re
import signal
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.front_terminal import FrontTerminal, front_terminal
from support.waiting import eventually

PROMPT = r"(?m)^\u203a ?$"
CHOICES = r"1  Allow once"


def entries(record: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record.read_text("utf-8").splitlines()] if record.exists() else []


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "record.jsonl"


def editor(tmp_path: Path, script: str) -> dict[str, str]:
    """Return the variables of an $EDITOR that runs this Python on the file (its path is in `path`)."""
    program = tmp_path / "editor.py"
    program.write_text(f"import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n{script}\n", "utf-8")
    return {"EDITOR": f"{sys.executable} {program}"}


def test_text_appears_as_it_streams() -> None:
    with front_terminal("stream") as terminal:
        terminal.wait_for(PROMPT).press("hello\r").wait_for(r"first part")
        assert "second" not in terminal.screen
        terminal.signal(signal.SIGUSR2).wait_for(r"first part and the second part\.").wait_for(PROMPT)


def test_a_numbered_choice_answers_the_question(record: Path, front: FrontTerminal) -> None:
    with front("edit", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES)
        assert re.search(r'(?m)^    2 -     return "Hi " \+ name$', terminal.screen)
        assert re.search(r'(?m)^    2 \+     return f"Hello, \{name\}!"$', terminal.screen)
        assert terminal.color_of('-     return "Hi') == "red"
        assert terminal.color_of('+     return f"Hello') == "green"
        terminal.press("2").wait_for("All done").wait_for(PROMPT)
        assert "\u203a Always allow" in terminal.screen
        assert "this one time" not in terminal.screen
    assert entries(record)[-1] == {"answer": "proceed_always_tool", "by": "terminal", "content": None}


def test_keys_that_are_no_choice_answer_nothing(record: Path, front: FrontTerminal) -> None:
    with front("edit", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES)
        terminal.press("\r9x \x1b[200~1\x1b[201~n").wait_for("\u203a Reject").wait_for("not run")
    assert [entry["answer"] for entry in entries(record)[1:]] == ["cancel"]


def test_a_choice_of_two_digits_is_typed_and_sent(record: Path, front: FrontTerminal) -> None:
    with front("many", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(r"(?m)^   1  Option 1$").wait_for(r"15  Reject")
        terminal.press("99\r").wait_for("one of 1, 2").press("12\r").wait_for("Chosen")
    assert entries(record)[-1]["answer"] == "option_12"


def test_what_is_typed_before_the_question_does_not_answer_it(record: Path, front: FrontTerminal) -> None:
    with front("stream", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("one\r").wait_for("first part").press("two\r")
        terminal.signal(signal.SIGUSR2).wait_for("second part")
        # At a prompt it is the next message, and it was not shown while the agent wrote.
        terminal.wait_for(r"(?m)^\u203a two$")
        assert not re.search(r"first part.*two", terminal.screen)
        eventually(lambda: [entry["prompt"] for entry in entries(record)] == ["one", "two"])


def test_an_answer_on_another_surface_takes_the_question_away(record: Path, front: FrontTerminal) -> None:
    with front("edit", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES)
        terminal.signal(signal.SIGUSR1).wait_for("\u203a Allow once  answered in neovim").wait_for("All done")
        terminal.wait_for(PROMPT)
        assert not re.search(CHOICES, terminal.screen)
    assert [entry["by"] for entry in entries(record)[1:]] == ["neovim"]


def test_several_questions_are_asked_one_after_the_other(record: Path, front: FrontTerminal) -> None:
    with front("two", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES)
        assert "make test" not in terminal.screen
        terminal.press("1").wait_for(r"\$ make test").wait_for(CHOICES)
        assert "✓ replace" in terminal.screen
        terminal.press("3").wait_for("Both decided").wait_for(PROMPT)
    assert [entry["answer"] for entry in entries(record)[1:]] == ["proceed_once", "cancel"]


def test_an_edit_in_the_editor_goes_along_with_the_answer(record: Path, tmp_path: Path, front: FrontTerminal) -> None:
    environment = editor(tmp_path, 'path.write_text(path.read_text("utf-8").replace("Hello", "Good day"), "utf-8")')
    with front("edit", "--record", str(record), environment=environment) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES).press("e").wait_for("with your edits")
        terminal.wait_for(r'\+     return f"Good day').wait_for("e  Edit again").press("1").wait_for("All done")
        assert "\u203a Allow once, with your edits" in terminal.screen
    answer = entries(record)[-1]
    assert answer["answer"] == "proceed_once"
    assert 'return f"Good day, {name}!"' in answer["content"]


def test_some_hunks_of_an_edit_are_accepted_by_their_numbers(record: Path, front: FrontTerminal) -> None:
    with front("hunks", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for("h  Some hunks").press("h")
        terminal.wait_for(r"3  line 5   - five   \+ FIVE").press("4\r").wait_for("no hunk has the number 4")
        terminal.press("\r").wait_for(CHOICES).press("h").wait_for("Which hunks")
        terminal.press("1,3\r").wait_for("with your edits").wait_for("e  Edit again")
        assert not re.search(r"(?m)^ +3 \+ THREE", terminal.screen.rsplit("with your edits", 1)[-1])
        terminal.press("1").wait_for("All done")
    assert entries(record)[-1]["content"] == "ONE\ntwo\nthree\nfour\nFIVE\n"


def test_an_editor_that_fails_leaves_the_question_as_it_was(record: Path, front: FrontTerminal) -> None:
    with front("edit", "--record", str(record), environment={"EDITOR": "no-such-editor"}) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES).press("e").wait_for("cannot start the editor")
        terminal.wait_for(CHOICES).press("1").wait_for("All done")
    assert entries(record)[-1]["content"] is None


def test_ctrl_c_cancels_the_turn_and_not_the_program(record: Path, front: FrontTerminal) -> None:
    with front("endless", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("wait\r").wait_for("working on it").press("\x03").wait_for("\u2013 cancelled")
        terminal.wait_for(PROMPT).press("hello again\r").wait_for("You said: hello again").wait_for(PROMPT)
        terminal.press("\x04").wait_for(r"To come back to this session: isthmus --resume [0-9a-f]{8}")
    kinds = [next(iter(entry)) for entry in entries(record)]
    assert kinds == ["prompt", "cancel", "prompt"]
    # The session continues.
    assert entries(record)[0]["session"] is None
    assert entries(record)[2]["session"] is not None


def test_ctrl_c_at_a_question_cancels_the_turn(record: Path, front: FrontTerminal) -> None:
    with front("edit", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES).press("\x03").wait_for("\u2013 cancelled")
        terminal.wait_for(PROMPT)
        assert terminal.screen.count("? Change") == 1
    assert entries(record)[-1] == {"cancel": True}


def test_ctrl_c_twice_at_the_empty_prompt_leaves(front: FrontTerminal) -> None:
    with front("edit") as terminal:
        terminal.wait_for(PROMPT).press("half a thought\x03").wait_for(PROMPT)
        terminal.press("\x03").wait_for("Press Ctrl-C again").press("\x03")
        assert terminal.wait_for_exit() == 0


@pytest.mark.parametrize("keys", ["\x04", "/quit\r", "exit\r"])
def test_it_can_be_left(keys: str, front: FrontTerminal) -> None:
    with front("edit") as terminal:
        terminal.wait_for(PROMPT).press(keys)
        assert terminal.wait_for_exit() == 0


def test_ctrl_d_at_a_question_leaves_it_open_and_says_how_to_come_back(record: Path, front: FrontTerminal) -> None:
    with front("edit", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES).press("\x04")
        terminal.wait_for(r"The question stays open: isthmus --resume [0-9a-f]{8}")
        assert terminal.wait_for_exit() == 0
    assert [next(iter(entry)) for entry in entries(record)] == ["prompt"]


def test_resuming_shows_the_conversation_and_asks_the_open_question_again(record: Path, front: FrontTerminal) -> None:
    with front("edit", "--seed", "change it", "--resume", "latest", "--record", str(record)) as terminal:
        terminal.wait_for(r"(?m)^\u203a change it$").wait_for(r"\? Change greeting\.py").wait_for(CHOICES)
        terminal.press("1").wait_for("All done").wait_for(PROMPT).press("and more\r").wait_for(CHOICES)
    prompts = [entry for entry in entries(record) if "prompt" in entry]
    assert [entry["prompt"] for entry in prompts] == ["change it", "and more"]
    assert prompts[1]["session"] is not None


def test_resuming_an_unknown_session_is_a_clear_error(front: FrontTerminal) -> None:
    with front("edit", "--resume", "nonsense") as terminal:
        terminal.wait_for("no session has the id 'nonsense'")
        assert terminal.wait_for_exit() == 1


def test_nothing_that_is_said_controls_the_terminal(front: FrontTerminal) -> None:
    with front("hostile", rows=70) as terminal:
        terminal.wait_for(PROMPT).press("go\r").wait_for(CHOICES).press("1").wait_for(r"\$ rm").wait_for(CHOICES)
        terminal.press("1").wait_for("survived").wait_for(PROMPT)
        assert terminal.title == "workspace - isthmus"
        assert "Isthmus, scripted model" in terminal.screen
        assert "text ␛]0;owned␇␛[2J␛[31mred␛[0m\\u202egpj.exe end" in terminal.screen
        received = terminal.received
    for sequence in (b"\x1b]0;owned", b"\x1b[2J", b"\x1b[31mred", "\u202e".encode()):
        assert sequence not in received


def test_a_narrow_terminal_loses_nothing(front: FrontTerminal) -> None:
    with front("edit", columns=30, rows=40) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES).wait_for("t  Reject and tell")
        text = terminal.screen
        assert all(len(line) <= 30 for line in text.splitlines())
        assert 'returnf"Hello,{name}!"' in "".join(text.split())
        for choice in ("1  Allow once", "2  Always allow", "3  Reject", "e  Edit first"):
            assert choice in text
        terminal.press("1").wait_for("All done")


def test_live_output_is_redrawn_in_place(front: FrontTerminal) -> None:
    with front("live") as terminal:
        terminal.wait_for(PROMPT).press("build\r").wait_for("run_shell_command")
        terminal.signal(signal.SIGUSR2).wait_for(r"(?m)^    two$")
        terminal.signal(signal.SIGUSR2).wait_for("Built").wait_for(PROMPT)
        assert terminal.screen.count("run_shell_command") == 1
        assert re.search(r"✓ run_shell_command  make.*\n    one\n    two\n    three\n", terminal.screen)


def test_several_lines_can_be_typed(record: Path, front: FrontTerminal) -> None:
    with front("endless", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("one\\\rtwo\x1b\rthree\r").wait_for("You said: one")
    assert entries(record)[0]["prompt"] == "one\ntwo\nthree"


def test_the_history_is_private_and_comes_back(tmp_path: Path, front: FrontTerminal) -> None:
    history = tmp_path / "data" / "history"
    with front("endless", "--history", str(history)) as terminal:
        terminal.wait_for(PROMPT).press("remember me\r").wait_for("You said").wait_for(PROMPT).press("\x04")
        assert terminal.wait_for_exit() == 0
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    with front("endless", "--history", str(history)) as terminal:
        terminal.wait_for(PROMPT).press("\x1b[A").wait_for(r"(?m)^\u203a remember me$")


def test_local_commands_are_not_sent(record: Path, front: FrontTerminal) -> None:
    with front("endless", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("/help\r").wait_for("/sessions").wait_for(PROMPT)
        terminal.press("/nonsense\r").wait_for("Unknown command /nonsense").wait_for(PROMPT)
        terminal.press("/tmp/file is a path\r").wait_for("You said: /tmp/file").wait_for(PROMPT)
        terminal.press("/sessions\r").wait_for(r"completed  /tmp/file is a path").wait_for(PROMPT)
        terminal.press("/clear\r").wait_until_gone("You said").wait_for(PROMPT).press("new\r").wait_for("You said: new")
    assert [entry["prompt"] for entry in entries(record)] == ["/tmp/file is a path", "new"]
    assert entries(record)[1]["session"] is None


def test_no_color_is_honoured(front: FrontTerminal) -> None:
    with front("edit", environment={"NO_COLOR": "1"}) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES)
        assert terminal.color_of('-     return "Hi') == "default"
        assert not re.search(rb"\x1b\[[0-9;]*3[0-7]", terminal.received)


def test_a_terminal_that_does_not_tell_its_cursor_is_not_asked(front: FrontTerminal) -> None:
    with front("edit") as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES).press("1").wait_for("All done").wait_for(PROMPT)
        assert b"\x1b[6n" not in terminal.received


def test_a_dumb_terminal_gets_plain_lines(record: Path, front: FrontTerminal) -> None:
    environment = {"TERM": "dumb"}
    with front("edit", "--record", str(record), environment=environment) as terminal:
        terminal.wait_for(r"\u203a").press("do it\r").wait_for(r"answer \(1, 2, 3, e, t\):")
        terminal.press("7\r").wait_for("'7' is not one of").press("1\r").wait_for("All done")
        assert b"\x1b" not in terminal.received
    assert entries(record)[-1]["answer"] == "proceed_once"


def test_ctrl_c_on_a_dumb_terminal_cancels_the_turn_and_twice_leaves(front: FrontTerminal) -> None:
    with front("endless", environment={"TERM": "dumb"}) as terminal:
        terminal.wait_for("\u203a").press("wait\r").wait_for("working on it").press("\x03").wait_for("\u2013 cancelled")
        terminal.wait_for(PROMPT).press("\x03").wait_for("Press Ctrl-C again").press("\x03")
        assert terminal.wait_for_exit() == 0


def test_a_signal_to_end_leaves_the_terminal_as_it_was() -> None:
    import termios

    with front_terminal("endless") as terminal:
        terminal.wait_for(PROMPT)
        descriptor = terminal.terminal
        terminal.press("wait\r").wait_for("working on it")
        assert not termios.tcgetattr(descriptor)[3] & termios.ECHO
        terminal.signal(signal.SIGTERM)
        eventually(lambda: termios.tcgetattr(descriptor)[3] & termios.ECHO, what="the echo is back")
        assert terminal.wait_for_exit() == 128 + signal.SIGTERM


def test_an_idle_conversation_is_small() -> None:
    with front_terminal("edit") as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES).press("1").wait_for("All done").wait_for(PROMPT)
        assert psutil.Process(terminal.process.pid).memory_info().rss <= 110 * 1024 * 1024


def test_plain_input_serves_where_stdin_is_no_terminal(tmp_path: Path, record: Path) -> None:
    import subprocess

    source = Path(__file__).resolve().parent.parent
    result = subprocess.run(
        [sys.executable, "-m", "support.front_program", "edit", "--record", str(record)],
        input="do it\n1\n/help\n",
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(source)},
        timeout=100,
    )
    assert result.returncode == 0, result.stderr
    assert "\u203a do it" in result.stdout
    assert "All done." in result.stdout
    assert "\x1b" not in result.stdout
    assert entries(record)[-1]["answer"] == "proceed_once"


def test_a_command_is_completed_on_tab_and_runs(front: FrontTerminal) -> None:
    with front("edit") as terminal:
        terminal.wait_for(PROMPT).press("/sa")
        for _ in range(8):
            with suppress(AssertionError):  # a busy machine may suggest too late
                terminal.press("\t").wait_for(r"(?m)^\u203a /say", 5)
                break
        terminal.press(" it\r").wait_for(CHOICES)
        terminal.press("1").wait_for("All done").wait_for(PROMPT)


def test_all_of_a_question_is_read_at_eighty_columns(front: FrontTerminal) -> None:
    with front("long_choice") as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES)
        text = " ".join(terminal.screen.split())
        assert "commands that begin with these words run without asking; options that write files" in text
        assert "and output into files, are asked each time" in text
        assert "runs in /workspace · covers this command, once" in text


def test_a_question_rings_once_and_the_title_is_given_back(front: FrontTerminal) -> None:
    with front("edit") as terminal:
        terminal.wait_for(PROMPT)
        assert b"\x07" not in terminal.received
        assert terminal.title == "workspace - isthmus"
        terminal.press("do it\r").wait_for(CHOICES)
        assert terminal.received.count(b"\x07") == 1
        assert terminal.title == "? workspace - isthmus"
        terminal.press("1").wait_for("All done").wait_for(PROMPT)
        assert terminal.title == "workspace - isthmus"
        terminal.press("\x04")
        eventually(lambda: b"\x1b[23;2t" in terminal.received)


def test_a_dumb_terminal_gets_neither_bell_nor_title(front: FrontTerminal) -> None:
    with front("edit", environment={"TERM": "dumb"}) as terminal:
        terminal.wait_for(r"(?m)^\u203a").press("do it\r").wait_for(CHOICES)
        assert b"\x07" not in terminal.received
        assert b"\x1b]" not in terminal.received
