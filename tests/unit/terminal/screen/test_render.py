import io
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from isthmus.client import Delivery, TaskSnapshot
from isthmus.development_tool import (
    AgentThought,
    ConfirmationRequest,
    ErrorDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ModifiedFileDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.events import (
    AgentEvent,
    Command,
    ConfirmationAccepted,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from isthmus.internal_events import PromptBegun, ThoughtProgress
from isthmus.questions import LOOP_QUESTION
from isthmus.task_view import TaskView
from isthmus.terminal.questions.questions import question_of
from isthmus.terminal.screen.render import TaskRenderer
from isthmus.terminal.screen.screen import Screen
from support.front_program import NEW, OLD, OPTIONS, WORKSPACE, edit_call, shell_call

SNAPSHOT = TaskSnapshot("t", "c", TaskState.WORKING, 0, WORKSPACE, 0, 0)


class Transcript:
    """The renderer's output without a terminal, or on one if `is_terminal`."""

    def __init__(self, *, is_terminal: bool = False, width: int = 60, encoding: str = "utf-8") -> None:
        self._raw = io.BytesIO()
        output = io.TextIOWrapper(self._raw, encoding=encoding, newline="\n", write_through=True)
        self.screen = Screen(output, is_terminal=is_terminal, width=width)
        self.renderer = TaskRenderer(self.screen)
        self.view = TaskView.of_snapshot(SNAPSHOT)
        self._encoding = encoding
        self.renderer.begin(self.view, 0, None)

    def show(self, *events: AgentEvent, seconds: float = 1) -> "Transcript":
        for event in events:
            kept = not (isinstance(event, ToolCallUpdate) and event.is_ephemeral)
            seq = self.view.seq + 1 if kept else None
            self.view.apply(Delivery(seq, self.view.seq * seconds, event))
            self.renderer.event(event, self.view.seq * seconds)
        return self

    @property
    def text(self) -> str:
        self.renderer.end()
        return self._raw.getvalue().decode(self._encoding)


def in_status(call: ToolCall, status: ToolCallStatus, output: ToolOutput | None = None) -> ToolCallUpdate:
    return ToolCallUpdate(replace(call, status=status, confirmation_request=None, output=output))


def run(call: ToolCall, output: ToolOutput) -> Sequence[ToolCallUpdate]:
    return in_status(call, ToolCallStatus.EXECUTING), in_status(call, ToolCallStatus.SUCCEEDED, output)


def test_the_present_thought_stays_when_the_events_that_began_its_request_come_late() -> None:
    transcript = Transcript(is_terminal=True)
    transcript.show(
        Prompt("p", "decide"),
        ThoughtProgress("Deciding"),
        PromptBegun("m", (), ()),
        Thought(AgentThought("Weighing", "")),
    )
    transcript.renderer.tick(5)
    assert "Deciding" in transcript.text.rpartition("Weighing")[2]


def test_a_turn_reads_like_a_transcript() -> None:
    failed = ToolCall(
        "r", ToolCallStatus.FAILED, "read_file", {"path": "b.py"}, error=ErrorDetails("no such file\nb.py")
    )
    transcript = Transcript().show(
        Prompt("p", "please\nlook"),
        Thought(AgentThought("Looking", "at it")),
        ToolCallUpdate(failed),
        RetryNotice(2, 5, 2, "429"),
        TextContent("a", "It is "),
        TextContent("a", "fine."),
        TextContent("b", "Really."),
        StateChange(TaskState.COMPLETED),
    )
    assert transcript.text == (
        "\u203a please\n  look\n"
        "\n"
        "∙ Looking\n"
        "✗ read_file  b.py\n"
        "    no such file\n"
        "    b.py\n"
        "! 429; trying again in 2 s (attempt 2 of 5)\n"
        "\n"
        "It is fine.\n"
        "\n"
        "Really.\n"
    )


def test_a_text_that_another_one_replaces_is_said_to_have_broken_off() -> None:
    torn = (TextContent("a", "It is f"), TextContent("b", "It is ", "a"), TextContent("b", "fine."))
    assert Transcript().show(*torn).text == (
        "It is f\n\n! The text above broke off and no longer counts; the answer starts again.\n\nIt is fine.\n"
    )
    assert Transcript().show(*torn[1:]).text == "It is fine.\n"


def test_an_edit_that_nobody_was_asked_about_shows_its_diff() -> None:
    call = edit_call()
    diff = FileDiff("greeting.py", f"{WORKSPACE}/greeting.py", NEW, OLD)
    text = Transcript().show(*run(call, ToolOutput(diff=diff))).text
    assert text.startswith("✓ replace  greeting.py  +1 -1  1s\n    1   def greet(name):\n    2 -     return ")


def test_an_edit_that_was_reviewed_is_not_shown_twice_unless_it_was_changed() -> None:
    diff = FileDiff("greeting.py", f"{WORKSPACE}/greeting.py", NEW, OLD)
    for content, times in ((NEW, 1), (NEW + "# more\n", 2)):
        transcript = Transcript()
        transcript.show(ToolCallUpdate(edit_call()))
        transcript.renderer.question(question_of(edit_call()))
        transcript.show(*run(edit_call(), ToolOutput(diff=replace(diff, new_content=content))))
        assert transcript.text.count('-     return "Hi') == times


def test_an_answer_from_elsewhere_says_who_gave_it() -> None:
    changed = ToolCallConfirmation("edit-1", "proceed_once", ModifiedFileDetails("x"))
    refused = ToolCallConfirmation("shell-1", "cancel")
    own = ToolCallConfirmation("own", "proceed_once")
    transcript = Transcript()
    transcript.show(ToolCallUpdate(edit_call()), ToolCallUpdate(shell_call()), ToolCallUpdate(edit_call("own")))
    transcript.renderer.answered_here("own")
    transcript.show(
        ConfirmationAccepted(changed, "neovim\x1b[2J"),
        ConfirmationAccepted(refused, ""),
        ConfirmationAccepted(own, "terminal"),
    )
    assert transcript.text == (
        "  \u203a Allow once, with changes  answered in neovim␛[2J\n\n  \u203a Reject  answered in another client\n"
    )


def test_of_a_long_output_the_end_is_kept_and_the_rest_is_counted() -> None:
    output = "".join(f"line {number}\n" for number in range(100))
    text = Transcript().show(*run(shell_call(), ToolOutput(text=output))).text
    assert text.splitlines()[1:3] == ["    … 92 lines above", "    line 92"]
    assert text.endswith("    line 99\n")


@pytest.mark.parametrize(
    ("output", "sign"),
    [
        ("1 failed\nExit Code: 1", "✗"),
        ("Signal: 9 (SIGKILL)", "✗"),
        ("x\nExit Code: 2\nBackground processes that were still running were ended: 12", "✗"),
        ("2 passed\n", "✓"),
        ("Exit Code: 0", "✓"),
        ("Exit Code: 1\n" + "more\n" * 9, "✓"),
    ],
)
def test_a_command_that_failed_has_no_check_mark(output: str, sign: str) -> None:
    call = ToolCall("c", ToolCallStatus.PENDING, "run_shell_command", {"command": "make test"})
    assert Transcript().show(*run(call, ToolOutput(text=output))).text.startswith(f"{sign} run_shell_command  ")


def test_what_a_tool_read_is_not_printed() -> None:
    call = ToolCall("r", ToolCallStatus.PENDING, "read_file", {}, "a.py")
    assert Transcript().show(*run(call, ToolOutput(text="secret\ncontent\n"))).text == "✓ read_file  a.py  1s\n"


def test_what_a_command_says_itself_is_not_shown_as_the_output_of_its_call_too() -> None:
    call = ToolCall("m", ToolCallStatus.PENDING, "save_memory", {}, "Remember: tea")
    added = ToolOutput(text="Added to GEMINI.md: tea")
    by_model = Transcript().show(*run(call, added)).text
    assert by_model.count("Added to GEMINI.md") == 1
    by_command = Transcript().show(
        Command("c", ("memory", "add"), "tea"), *run(call, added), TextContent("t", "Added.")
    )
    assert by_command.text == "✓ save_memory  Remember: tea  1s\n\nAdded.\n"
    typed_here = Transcript()
    typed_here.renderer.begin(typed_here.view, 0, "/memory add tea")
    assert "GEMINI.md" not in typed_here.show(*run(call, added)).text


def test_the_question_about_a_model_that_repeats_itself_has_words_for_a_title() -> None:
    request = ConfirmationRequest.of(OPTIONS, GenericDetails("The model repeats itself. Let it go on?"))
    call = ToolCall(
        "l", ToolCallStatus.PENDING, LOOP_QUESTION, {}, "The model repeats itself.", confirmation_request=request
    )
    transcript = Transcript()
    transcript.renderer.question(question_of(call))
    text = transcript.show(*run(call, ToolOutput(text="The model goes on."))).text
    assert text.startswith("? Let the model go on\n    The model repeats itself. Let it go on?\n")
    assert "✓ Let the model go on" in text
    assert LOOP_QUESTION not in text


def test_the_question_about_files_that_go_back_has_words_for_a_title() -> None:
    asked = ConfirmationRequest.of(OPTIONS, GenericDetails("Go back to checkpoint a1. Files:\n- /w/a.py: put back"))
    call = ToolCall("r", ToolCallStatus.PENDING, "restore", {"checkpoint_id": "a1"}, confirmation_request=asked)
    transcript = Transcript()
    transcript.renderer.question(question_of(call))
    assert transcript.text.startswith("? Put files back\n    Go back to checkpoint a1. Files:\n")


def test_another_tools_output_is_shown_by_its_beginning_without_code_fences() -> None:
    call = ToolCall("m", ToolCallStatus.PENDING, "get-picture", {}, "of the MCP server pictures")
    text = Transcript().show(*run(call, ToolOutput(text="text (1 line) + image/png (3 KB)\nHere\x1b[2J it is"))).text
    assert text.splitlines()[1:] == ["    text (1 line) + image/png (3 KB)", "    Here it is"]
    rows = "\n".join(f'  "{number}": 1,' for number in range(20))
    lines = Transcript().show(*run(call, ToolOutput(text=f"```json\n{{\n{rows}\n}}\n```"))).text.splitlines()
    assert lines[1:3] == ["    {", '      "0": 1,']
    assert lines[-1] == "    … 14 more lines"


def test_a_long_line_of_a_result_is_folded_so_that_its_end_is_seen() -> None:
    call = ToolCall("m", ToolCallStatus.PENDING, "get-picture", {}, "get-picture of the MCP server pictures {}")
    path = "/home/somebody/" + "a-long-folder-name/" * 5 + "picture.png"
    text = Transcript().show(*run(call, ToolOutput(text=f"one\n[image image/png, 4 KB; kept in {path}]\nlast"))).text
    lines = text.splitlines()
    assert lines[0] == "✓ get-picture  of the MCP server pictures {}  1s"
    assert "".join(line.strip() for line in lines[2:-1]).replace(" ", "").endswith(f"keptin{path}]")
    assert (lines[1], lines[-1]) == ("    one", "    last")
    endless = Transcript().show(*run(call, ToolOutput(text="x" * 5000 + "\nlast"))).text.splitlines()
    assert len(endless) == 10
    assert (endless[-2][-1], endless[-1]) == ("…", "    … 1 more line")


def test_a_long_diff_is_cut_and_says_so() -> None:
    diff = FileDiff("a.txt", f"{WORKSPACE}/a.txt", "".join(f"{number}\n" for number in range(1000)))
    asked = replace(edit_call(), confirmation_request=ConfirmationRequest(OPTIONS, file_edit_details=diff))
    transcript = Transcript()
    transcript.renderer.question(question_of(asked))
    assert "… 600 more lines of the change" in transcript.text
    long_line = replace(diff, new_content="x" * 5000 + "\n")
    transcript = Transcript()
    transcript.renderer.question(
        question_of(replace(asked, confirmation_request=ConfirmationRequest(OPTIONS, file_edit_details=long_line)))
    )
    assert "(5000 characters)" in transcript.text.replace("\n", "").replace("        ", "")


def test_a_question_shows_the_path_from_the_workspace_or_the_whole_of_it() -> None:
    for path, shown in (("/workspace/src/a.py", "src/a.py"), ("/etc/a.py", "/etc/a.py")):
        diff = FileDiff("a.py", path, "x\n")
        asked = replace(edit_call(), confirmation_request=ConfirmationRequest(OPTIONS, file_edit_details=diff))
        transcript = Transcript()
        transcript.renderer.question(question_of(asked))
        assert f"? Create {shown}  +1 -0\n    a new file, 1 line · covers this file only\n" in transcript.text


def test_a_question_about_an_mcp_tool_shows_server_tool_and_arguments() -> None:
    request = ConfirmationRequest(OPTIONS, mcp_details=McpDetails("git\x1b[2J", "push"))
    call = ToolCall("m", ToolCallStatus.PENDING, "git__push", {"force": True}, confirmation_request=request)
    transcript = Transcript()
    transcript.renderer.question(question_of(call))
    assert transcript.text == (
        "? git__push  push of the MCP server git␛[2J\n"
        "    goes to git␛[2J, an MCP server · covers this call, once\n"
        '    {\n      "force": true\n    }\n'
    )


def test_a_question_about_an_mcp_tool_says_what_its_server_says_of_it() -> None:
    request = ConfirmationRequest(OPTIONS, mcp_details=McpDetails("files", "wipe"))
    described = 'wipe of the MCP server files {"all": true}\nIts server says that it can destroy things.'
    call = ToolCall("m", ToolCallStatus.PENDING, "wipe", {"all": True}, described, confirmation_request=request)
    transcript = Transcript()
    transcript.renderer.question(question_of(call))
    assert transcript.text.splitlines() == [
        "? wipe  of the MCP server files",
        "    goes to files, an MCP server · covers this call, once",
        "    Its server says that it can destroy things.",
        "    {",
        '      "all": true',
        "    }",
    ]
    done = Transcript().show(*run(call, ToolOutput(text="gone"))).text.splitlines()
    assert done[0] == '✓ wipe  of the MCP server files {"all": true}  1s'


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (StateChange(TaskState.FAILED, "the model is gone"), "✗ the model is gone\n"),
        (StateChange(TaskState.FAILED), "✗ The task failed.\n"),
        (
            StateChange(TaskState.FAILED, "20 requests were not enough", "turn_limit"),
            "✗ 20 requests were not enough\n  Send another prompt to continue.\n",
        ),
        (StateChange(TaskState.CANCELED), "\u2013 cancelled\n"),
        (StateChange(TaskState.COMPLETED), ""),
    ],
)
def test_the_end_of_a_task_is_told_when_it_is_no_success(change: StateChange, shown: str) -> None:
    assert Transcript().show(change).text == shown


def test_where_the_encoding_has_no_such_signs_they_are_ascii() -> None:
    call = ToolCall("r", ToolCallStatus.PENDING, "read_file", {}, "a.py")
    assert Transcript(encoding="ascii").show(*run(call, ToolOutput(text="x"))).text == "+ read_file  a.py  1s\n"


def test_live_lines_leave_nothing_behind() -> None:
    import pyte

    transcript = Transcript(is_terminal=True, width=40)
    call = shell_call(command="make " + "x" * 100)
    transcript.show(TextContent("t", "A text without an end"), in_status(call, ToolCallStatus.EXECUTING))
    for output in ("one\n", "one\ntwo\n", "漢" * 50 + "\n"):
        live = replace(call, status=ToolCallStatus.EXECUTING, confirmation_request=None, live_content=output)
        transcript.show(ToolCallUpdate(live))
        transcript.renderer.tick(100.0)
    transcript.show(in_status(call, ToolCallStatus.SUCCEEDED, ToolOutput(text="done\n")), TextContent("u", "The end."))
    screen = pyte.Screen(40, 40)
    pyte.Stream(screen).feed(transcript.text.replace("\n", "\r\n"))
    lines = "\n".join(line.rstrip() for line in screen.display).rstrip().split("\n")
    assert lines[:2] == ["A text without an end", ""]
    assert lines[2].rstrip(" 1s") == "✓ run_shell_command"
    assert "".join(line.strip() for line in lines[3:7]) == "make " + "x" * 100
    assert lines[7:] == ["    done", "", "The end."]


def test_what_a_cancelled_program_printed_stays() -> None:
    call = shell_call()
    live = replace(call, status=ToolCallStatus.EXECUTING, confirmation_request=None, live_content="one\ntwo\n")
    transcript = Transcript().show(in_status(call, ToolCallStatus.EXECUTING), ToolCallUpdate(live))
    transcript.show(in_status(call, ToolCallStatus.CANCELLED))
    assert transcript.text.split("\n")[1:] == ["    one", "    two", ""]


def test_long_errors_and_commands_stay_within_their_indent() -> None:
    reason = "the reason is told in more words than one line of this terminal has room for"
    call = ToolCall("r", ToolCallStatus.FAILED, "read_file", {}, "a.py", error=ErrorDetails(reason))
    transcript = Transcript(is_terminal=True, width=40).show(ToolCallUpdate(call))
    transcript.renderer.question(question_of(shell_call(command="make " + "x" * 60)))
    lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line).rstrip() for line in transcript.text.splitlines()]
    assert lines[1:4] == [
        "    the reason is told in more words",
        "    than one line of this terminal has",
        "    room for",
    ]
    start = lines.index("    $ make " + "x" * 28)
    assert lines[start + 1] == "          " + "x" * 29


def test_a_text_goes_on_where_it_was_after_a_pause() -> None:
    import pyte

    transcript = Transcript(is_terminal=True, width=40)
    transcript.show(TextContent("t", "A text that "))
    transcript.renderer.tick(100.0)
    transcript.renderer.tick(101.0)
    transcript.show(TextContent("t", "goes on.\n\nAnd"))
    transcript.renderer.tick(200.0)
    transcript.show(TextContent("t", " on."))
    screen = pyte.Screen(40, 40)
    pyte.Stream(screen).feed(transcript.text.replace("\n", "\r\n"))
    lines = "\n".join(line.rstrip() for line in screen.display).rstrip().split("\n")
    assert lines == ["A text that goes on.", "", "And on."]


def test_every_line_of_a_command_that_nobody_was_asked_about_is_shown() -> None:
    call = replace(shell_call(command="git status\n\\\ntouch X"), confirmation_request=None)
    text = Transcript().show(*run(call, ToolOutput(text=""))).text
    assert text == "✓ run_shell_command  1s\n    git status\n    \\\n    touch X\n"


def test_a_command_longer_than_a_line_is_shown_to_its_end() -> None:
    call = replace(shell_call(command="git status " + "a" * 60 + " && touch X"), confirmation_request=None)
    text = Transcript(width=40).show(*run(call, ToolOutput(text=""))).text
    assert "".join(line.removeprefix("    ") for line in text.splitlines()[1:]).endswith("a && touch X")


def test_for_a_long_confirmed_command_the_result_repeats_the_beginning_and_says_so() -> None:
    call = shell_call(command="\n".join(f"echo {number}" for number in range(30)))
    transcript = Transcript()
    transcript.show(ToolCallUpdate(call))
    transcript.renderer.question(question_of(call))
    transcript.show(*run(call, ToolOutput(text="")))
    assert "echo 29" in transcript.text.split("✓")[0]
    assert "echo 7\n    … 22 more lines, shown in the question\n" in transcript.text.split("✓")[1]


def todo_call(call_id: str, *entries: tuple[str, str]) -> ToolCall:
    todos = [{"description": description, "status": status} for description, status in entries]
    return ToolCall(call_id, ToolCallStatus.PENDING, "write_todos", {"todos": todos}, f"{len(entries)} steps")


def test_a_list_of_things_to_do_is_shown_whole_and_then_by_its_changes() -> None:
    first = todo_call("t1", ("Read \x1b[2J", "in_progress"), ("Edit", "pending"), ("Test", "pending"))
    second = todo_call("t2", ("Read \x1b[2J", "completed"), ("Edit", "in_progress"), ("Test", "pending"))
    third = todo_call("t3", ("Edit", "blocked"), ("Test", "cancelled"), ("Ask " + "x" * 80, "pending"))
    transcript = Transcript(width=40)
    for call in (first, second, third):
        transcript.show(*run(call, ToolOutput(text="- [ ] not shown")), seconds=0)
    assert transcript.text == (
        "✓ write_todos  3 steps\n    \u203a Read \u241b[2J\n    · Edit\n    · Test\n"
        "✓ write_todos  3 steps\n    ✓ Read \u241b[2J\n    \u203a Edit\n"
        "✓ write_todos  3 steps\n    ? Edit\n    \u2013 Test\n    · Ask " + "x" * 29 + "…\n"
    )


def test_a_list_that_was_refused_is_not_taken_for_the_present_one() -> None:
    call = todo_call("t1", ("Read", "pending"))
    failed = replace(call, status=ToolCallStatus.FAILED, error=ErrorDetails("expected something else"))
    transcript = Transcript().show(ToolCallUpdate(failed))
    transcript.show(*run(replace(call, tool_call_id="t2"), ToolOutput(text="")), seconds=0)
    assert transcript.text.endswith("✓ write_todos  1 steps\n    · Read\n")
