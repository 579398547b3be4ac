"""Commands of a session that show or change its state: the whole program in a terminal, and with -p."""

import base64
import json
import signal
import sys
from pathlib import Path

import pytest

from support.isolation import IsolatedFolders
from support.isthmus_program import InProcess
from support.loaded_program import LoadedProgram
from support.session_terminal import PROMPT, Sessions, model_request

SCRIPT = """
name: practice
price: 2
scenarios:
  - prompt: 'approve the plan'
    replies:
      - call: {name: write_file, arguments: {file_path: new.txt, content: "made\\n"}}
      - text: Carried out.
  - prompt: 'look and write'
    replies:
      - call: {name: read_file, arguments: {file_path: new.txt}}
      - call: {name: write_file, arguments: {file_path: new.txt, content: "made\\n"}}
      - text: Written.
  - prompt: 'write it'
    replies:
      - call: {name: write_file, arguments: {file_path: new.txt, content: "made\\n"}}
      - text: Written.
  - prompt: 'as json'
    replies: [{text: 'Here it is.'}]
  - prompt: 'Write the answer again'
    replies: [{text: '{"done": true}'}]
  - prompt: 'plan'
    replies: [{text: 'First I write new.txt.'}]
  - prompt: '.'
    replies: [{text: 'You said: {{prompt}}'}]
"""
CHOICES = r"1  Allow once"
NO_CHECKPOINT = r"restore \(a number, or Enter for none\):"
PROMPT_OF_YOLO = r"(?m)^yolo \u203a ?$"


@pytest.fixture
def sessions(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> Sessions:
    return Sessions(tmp_path, SCRIPT, workspace, loaded_isthmus)


def test_a_plan_is_approved_and_then_carried_out(sessions: Sessions) -> None:
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("/plan plan the file\r").wait_for("First I write new.txt.")
        terminal.wait_for("1  Carry it out").press("2").wait_for("Carried out.").wait_for(r"(?m)^auto_edit \u203a ?$")
    assert (sessions.workspace / "new.txt").read_text("utf-8") == "made\n"


def test_a_plan_that_is_not_approved_changes_nothing_and_can_be_changed_first(sessions: Sessions) -> None:
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("/plan plan the file\r").wait_for("1  Carry it out").press("\r")
        terminal.wait_for(r"(?m)^plan \u203a ?$").press("write it\r").wait_for(r"(?m)^plan \u203a ?$")
        assert not (sessions.workspace / "new.txt").exists()
        terminal.press("/mode default\r").wait_for(PROMPT).press("/plan plan the file\r").wait_for(
            r"(?s)default, which.*1  Carry it out"
        )
        terminal.press("another plan\r").wait_for(r"(?m)^\u203a another plan$").wait_for("1  Carry it out")
        terminal.press("1\r").wait_for(CHOICES).press("1").wait_for("Carried out.").wait_for(PROMPT)


def test_a_model_and_an_effort_are_chosen_from_lists(sessions: Sessions) -> None:
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("/effort\r").wait_for(" 3  high").wait_for("effort, or a number:")
        terminal.press("3\r").wait_for("This session continues with the effort high.").wait_for(PROMPT)
        terminal.press("/effort\r").wait_for("effort, or a number:").press("\r").wait_for("Effort: high").wait_for(
            PROMPT
        )
        terminal.press("/model\r").wait_for(" 1  script").wait_for("model, or a number:")
        terminal.press("1\r").wait_for("This session continues with practice").wait_for(PROMPT)


def test_an_edit_is_undone_with_the_conversation(sessions: Sessions) -> None:
    with sessions.terminal("-y") as terminal:
        terminal.wait_for(PROMPT_OF_YOLO).press("write it\r").wait_for("Written.").wait_for(PROMPT_OF_YOLO)
        terminal.press("/restore\r").wait_for(r"1  [0-9a-f]{10}  .* new\.txt  write it").wait_for(NO_CHECKPOINT)
        terminal.press("\r").wait_for(PROMPT_OF_YOLO)
        assert (sessions.workspace / "new.txt").exists()
        terminal.press("/restore\r").wait_for(NO_CHECKPOINT).press("1\r")
        terminal.wait_for("The conversation is back at its state before that edit")
        assert not (sessions.workspace / "new.txt").exists()


def test_a_saved_chat_is_chosen_from_a_list_to_go_on_with_or_to_delete(sessions: Sessions) -> None:
    with sessions.terminal("call it Zephyr") as terminal:
        terminal.wait_for("You said: call it Zephyr").wait_for(PROMPT)
        for name in ("first", "second"):
            terminal.press(f"/chat save {name}\r").wait_for(f"go on from it: /chat resume {name}").wait_for(PROMPT)
        terminal.press("/chat resume\r").wait_for(r"1  second  .* 2 messages  call it Zephyr")
        terminal.wait_for(r"chat resume \(a number, or Enter for none\):").press("2\r")
        terminal.wait_for("The model goes on from the chat 'first'").wait_for(PROMPT)
        terminal.press("/chat delete\r").wait_for(r"chat delete \(a number, or Enter for none\):").press("1\r")
        terminal.wait_for("Deleted the chat 'second'").wait_for(PROMPT)
        terminal.press("/chat load \t").wait_for(r"\u203a /chat load first")


def test_an_answer_is_asked_for_until_it_fits_the_schema(sessions: Sessions, isthmus_here: InProcess) -> None:
    schema = sessions.workspace / "schema.json"
    schema.write_text('{"type": "object", "required": ["done"]}', "utf-8")
    options = (*sessions.options, "--output-schema", str(schema), "-o", "json")
    status, output, errors = isthmus_here(*options, "-p", "as json")
    assert status == 0, errors
    assert json.loads(output)["structured_output"] == {"done": True}


def test_an_earlier_session_is_chosen_from_a_list(sessions: Sessions) -> None:
    with sessions.terminal("the first one") as terminal:
        terminal.wait_for("You said: the first one").wait_for(PROMPT).press("/clear\r").wait_for(PROMPT)
        terminal.press("the second one\r").wait_for("You said: the second one").wait_for(PROMPT).press("/clear\r")
        terminal.wait_for(PROMPT).press("/resume\r").wait_for(r"(?m)^ +2  .*the first one$").press("2\r")
        terminal.wait_for("You said: the first one").wait_for(PROMPT).press("go on\r").wait_for("You said: go on")
        terminal.wait_for(PROMPT).press("/tasks\r").wait_for("- .*the first one")
        assert "the second one" not in terminal.screen.partition("Tasks in this session")[2]


def test_diff_and_rewind_show_what_the_session_changed(sessions: Sessions, isthmus_here: InProcess) -> None:
    (sessions.workspace / "new.txt").write_text("before\n", "utf-8")
    with sessions.terminal("look and write", "-y") as terminal:
        terminal.wait_for("Written.").press("/diff\r").wait_for(r"(?m)^-before$").wait_for(r"(?m)^\+made$")
        terminal.wait_for(PROMPT_OF_YOLO).press("/rewind\r").wait_for(r"1  look and write  \(1 file edited since\)")
        terminal.press("1").wait_for("3  Files alone").press("\x1b").wait_for(PROMPT_OF_YOLO)
    _, shown, _ = isthmus_here(*sessions.options, "-c", "-p", "/diff")
    assert "--- a/new.txt" in shown
    assert "-before\n+made\n" in shown


def test_escape_twice_goes_back_to_before_a_message_that_can_then_be_changed(sessions: Sessions) -> None:
    file = sessions.workspace / "new.txt"
    with sessions.terminal("call it Zephyr", "-y") as terminal:
        terminal.wait_for("You said: call it Zephyr").wait_for(PROMPT_OF_YOLO).press("look and write\r").wait_for(
            "Written."
        )
        assert file.read_text("utf-8") == "made\n"
        terminal.wait_for(PROMPT_OF_YOLO).press("\x1b\x1b").wait_for(r"2  call it Zephyr").press("\x1b[B\r")
        terminal.wait_for("2  Conversation alone; the files stay").press("1").wait_for("look and write' *\\.")
        terminal.wait_for(r"(?m)resume NAME\.\n\nyolo \u203a look and write$")
        assert " ".join(terminal.screen.split()).count("removed, since it did not exist") == 1
        terminal.press("\x7f" * 14 + "again\r").wait_for("You said: again")
        assert not file.exists()
        terminal.wait_for(PROMPT_OF_YOLO).press("/rewind\r").wait_for(r"1  again").wait_for(r"2  call it Zephyr")
        assert "look and write" not in terminal.screen.rpartition("/rewind")[2]


def test_context_and_cost_say_what_is_used(sessions: Sessions, isthmus_here: InProcess) -> None:
    with sessions.terminal("hello") as terminal:
        terminal.wait_for("You said: hello").wait_for(PROMPT).press("/context\r").wait_for(
            r"About [\d,]+ of 128,000 tokens"
        ).wait_for("  tools \\(")
        terminal.wait_for(r"(?m) free$").wait_for(PROMPT).press("/cost\r").wait_for(r"This session: \$\d")
        terminal.wait_for(r"practice: \$[\d.]+, 1 request, ")
    _, shown, _ = isthmus_here(*sessions.options, "-c", "-p", "/context")
    assert "of 128,000 tokens" in shown


def test_review_hands_the_changes_to_the_model(sessions: Sessions, isthmus_here: InProcess) -> None:
    request = model_request(isthmus_here, "--data-dir", str(sessions.data), "-p", "/review topic")
    assert "git diff HEAD...topic" in request


def test_the_keys_of_vi_edit_the_message(sessions: Sessions, isolated_folders: IsolatedFolders) -> None:
    settings = isolated_folders.home / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"general": {"vimMode": true}}', "utf-8")
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("one two\x1b").press("dbx").wait_for(r"(?m)^\u203a one$").press("\r")
        terminal.wait_for("You said: one")


def test_a_theme_is_kept_and_the_settings_and_the_editor_are_shown(
    sessions: Sessions, isolated_folders: IsolatedFolders
) -> None:
    settings = isolated_folders.home / ".gemini" / "settings.json"
    in_dark, in_own_green = b"\x1b[38;5;117m+ added", b"\x1b[32m+ added"
    with sessions.terminal(environment={"EDITOR": "vi -n"}) as terminal:
        terminal.wait_for(PROMPT).press("/theme\r").wait_for(r"1  \* auto").wait_for("theme, or a number:")
        terminal.press("3\r").wait_for(r"(?m)^\+ added  - removed").wait_for(f"Kept in {settings}").wait_for(PROMPT)
        assert in_dark in terminal.received
        terminal.press("/settings\r").wait_for(r"isthmus.terminal.theme = dark +/").wait_for(PROMPT)
        terminal.press("/editor\r").wait_for(r"vi -n \(\$EDITOR").wait_for("This session has no editor")
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("/theme\r").wait_for(r"3  \* dark").press("auto\r").wait_for("Kept in")
        assert in_own_green in terminal.received
    assert json.loads(settings.read_text("utf-8"))["isthmus"] == {"terminal": {"theme": "auto"}}
    with sessions.terminal(environment={"NO_COLOR": "1"}) as terminal:
        terminal.wait_for(PROMPT).press("/theme light\r").wait_for("NO_COLOR is set, so no colours are shown")
        terminal.wait_for(PROMPT)
        assert b"\x1b[3" not in terminal.received.replace(b"\x1b[3G", b"")


def test_a_message_is_edited_copied_and_found_again(sessions: Sessions, tmp_path: Path) -> None:
    program = tmp_path / "editor.py"
    program.write_text("import pathlib, sys\npathlib.Path(sys.argv[1]).write_text('from the editor')\n", "utf-8")
    environment = {"EDITOR": f"{sys.executable} {program}"}
    with sessions.terminal(environment=environment) as terminal:
        terminal.wait_for(PROMPT).press("draft\x18\x05").wait_for(r"(?m)^\u203a from the editor$").press("\r")
        terminal.wait_for("You said: from the editor").wait_for(PROMPT).press("/copy\r").wait_for(
            "Copied 25 characters"
        )
        assert b"\x1b]52;c;" + base64.b64encode(b"You said: from the editor") + b"\x07" in terminal.received
        terminal.wait_for(PROMPT).press("other\r").wait_for("You said: other").wait_for(PROMPT)
        terminal.press("\x12").press("the ed").wait_for("(?m)from the editor$").press("\r").press("\r")
        terminal.wait_for(r"(?s)You said: from the editor.*You said: other.*You said: from the editor")


def test_a_long_paste_is_folded_on_the_screen_and_sent_and_remembered_whole(sessions: Sessions) -> None:
    pasted = "\n".join(f"line {number}" for number in range(1, 8))
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press(f"see \x1b[200~{pasted}\x1b[201~\x1b[200~{pasted}\x1b[201~ please")
        terminal.wait_for(r"(?m)^\u203a see \[Pasted text 1: 7 lines\]\[Pasted text 1: 7 lines\] please$")
        terminal.press("\x1b[D" * len(" please") + "\x7f").wait_for(r"see \[Pasted text 1: 7 lines\] please")
        terminal.press("\r").wait_for(r"You said: see line 1\n *line 2\n(.*\n){4} *line 7 please")
        terminal.wait_for(PROMPT).press("\x1b[A").wait_for(r"(?m)^\u203a see \[Pasted text 1: 7 lines\] please$")
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("\x1b[A").wait_for(r"\u203a see line 1\n  line 2\n(.*\n){4}  line 7 please")


def test_a_chat_that_was_saved_before_kill_9_goes_on_in_a_new_program(sessions: Sessions) -> None:
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("call it Zephyr\r").wait_for("You said: call it Zephyr").wait_for(PROMPT)
        terminal.press("/chat save naming\r").wait_for("Saved the conversation").wait_for(PROMPT)
        terminal.signal(signal.SIGKILL).wait_for_exit()
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("/chat list\r").wait_for("naming  .* 2 messages  call it Zephyr").wait_for(
            PROMPT
        )
        terminal.press("/chat resume nam\t").wait_for(r"\u203a /chat resume naming").press("\r")
        terminal.wait_for("The model goes on from the chat 'naming'").wait_for("You said: call it Zephyr")
        terminal.wait_for(PROMPT).press("/context\r").wait_for(r"messages").wait_for(PROMPT)
        terminal.press("/chat share talk.md\r").wait_for("1  Allow once").press("1").wait_for(
            "Wrote the conversation to"
        )
        terminal.wait_for(PROMPT)
    assert (
        (sessions.workspace / "talk.md")
        .read_text("utf-8")
        .startswith("# Conversation\n\n## User\n\ncall it Zephyr\n\n## Agent\n\nYou said: call it Zephyr\n")
    )
