"""No word is broken between two rows, in any notice, question or diff, at the sizes that terminals have."""

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import fragment_list_to_text, to_formatted_text

from isthmus.client import TaskSnapshot
from isthmus.development_tool import (
    AgentThought,
    ConfirmationOption,
    ConfirmationRequest,
    ErrorDetails,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.events import AgentEvent, RetryNotice, StateChange, TaskState, Thought, ToolCallUpdate
from isthmus.task_view import TaskView
from isthmus.terminal.interactive.asking import TELL_LINES
from isthmus.terminal.interactive.command_list import KEYS, OWN, CommandList
from isthmus.terminal.interactive.plan_menu import PLAN_CHOICES, PLAN_LINES
from isthmus.terminal.interactive.rewind_menu import PART_LINES
from isthmus.terminal.prompt.menu_prompts import ChoicePrompt, LinePrompt, menu_rows
from isthmus.terminal.questions.questions import question_of
from isthmus.terminal.screen.blocks import brief_choice_lines, choice_lines
from isthmus.terminal.screen.render import TaskRenderer
from isthmus.terminal.screen.screen import Screen
from support.front_program import OPTIONS, WORKSPACE, edit_call, shell_call
from support.memory_agent import MemoryAgent
from support.whole_words import SIZES, SOURCE, broken_words, rows_of, texts_in

SAID = texts_in("terminal", "cli/run.py", "programs/setup", "agent/coding")
OFFERED = texts_in(
    *("agent/approval/policy.py", "agent/approval/private_reads.py", "agent/approval/outside_reads.py"),
    *("agent/coding/loop_guard.py", "mcp_host/elicitation", "terminal/questions"),
)
WIDTHS = [columns for columns, _ in SIZES]
MARK = "%%%"
COMMAND = (
    "python3 scripts/make_the_table.py --from-the-catalogue models-dev --write src/isthmus/models/catalogue/table.json"
    " && git diff --stat && echo 'the table is written, now look at its changes before you commit it'"
)


class Shown:
    """What a renderer shows on a terminal of some width."""

    def __init__(self, columns: int) -> None:
        self._raw = io.BytesIO()
        self.columns = columns
        output = io.TextIOWrapper(self._raw, encoding="utf-8", newline="\n", write_through=True)
        self.screen = Screen(output, is_terminal=True, width=columns)
        self.renderer = TaskRenderer(self.screen)
        self.renderer.begin(
            TaskView.of_snapshot(TaskSnapshot("t", "c", TaskState.WORKING, 0, WORKSPACE, 0, 0)), 0, None
        )

    def event(self, event: AgentEvent) -> None:
        self.renderer.event(event, 0)

    def rows(self) -> list[str]:
        self.renderer.end()
        return rows_of(self._raw.getvalue().decode(), self.columns)


def broken_in(columns: int, texts: Sequence[str], *shows: Callable[[Shown, str], None]) -> list[str]:
    """Return the words that break when each of the texts is shown in each of these ways."""
    shown = Shown(columns)
    each = [(show, text) for text in texts for show in shows]
    for show, text in each:
        show(shown, text)
        shown.screen.console.print(MARK)
        shown.screen.forget_position()
    blocks = "\n".join(shown.rows()).split(MARK)
    assert len(blocks) == len(each) + 1
    return [
        word
        for (_, text), block in zip(each, blocks, strict=False)
        for word in broken_words(block.split("\n"), [text], columns)
    ]


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_word_of_a_notice_an_error_or_a_result_is_broken(columns: int) -> None:
    failed = ToolCall("r", ToolCallStatus.FAILED, "read_file", {}, "a.py")
    done = ToolCall("m", ToolCallStatus.SUCCEEDED, "a_tool", {}, "a.py")
    assert len(SAID) > 150
    assert not broken_in(
        columns,
        SAID,
        lambda shown, text: shown.renderer.notice(text),
        lambda shown, text: shown.renderer.quiet(text),
        lambda shown, text: shown.event(StateChange(TaskState.FAILED, text)),
        lambda shown, text: shown.event(ToolCallUpdate(replace(failed, error=ErrorDetails(text)))),
    )
    assert not broken_in(
        columns,
        OFFERED,
        lambda shown, text: shown.renderer.prompt(text),
        lambda shown, text: shown.renderer.chosen(f"Reject: {text}", is_refusal=True),
        lambda shown, text: shown.event(RetryNotice(2, 5, 2, text)),
        lambda shown, text: shown.event(Thought(AgentThought(text, ""))),
        lambda shown, text: shown.event(ToolCallUpdate(replace(done, output=ToolOutput(text=text)))),
    )


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_word_of_the_help_is_broken(columns: int) -> None:
    lines = CommandList(MemoryAgent(lambda message: [])).help_lines()
    shown = Shown(columns)
    shown.renderer.quiet(*lines)
    assert not broken_words(shown.rows(), [f"{name} {what}" for name, what in (*OWN, *KEYS)], columns)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("path", ["terminal/screen/blocks.py", "agent/session/session.py", "models/scripted/demo.yaml"])
def test_no_word_of_a_diff_is_broken_unless_it_is_longer_than_a_row(columns: int, path: str) -> None:
    text = (SOURCE / path).read_text("utf-8")
    diff = FileDiff(Path(path).name, f"{WORKSPACE}/{path}", "\n".join(text.split("\n")[:150]), None)
    asked = replace(edit_call(), confirmation_request=ConfirmationRequest(OPTIONS, file_edit_details=diff))
    shown = Shown(columns)
    shown.renderer.question(question_of(asked))
    rows = shown.rows()
    assert len(rows) > 100
    assert not broken_words(rows, [text], columns)


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_word_of_a_question_is_broken(columns: int) -> None:
    def ask(shown: Shown, call: ToolCall) -> None:
        shown.renderer.question(question_of(call))

    def with_details(text: str) -> list[ToolCall]:
        mcp = ConfirmationRequest(OPTIONS, mcp_details=McpDetails("files", "wipe"))
        words = ConfirmationRequest.of(OPTIONS, GenericDetails(text))
        run = ConfirmationRequest(OPTIONS, execute_details=ExecuteDetails(f"{COMMAND} # {text}", WORKSPACE))
        return [
            ToolCall("m", ToolCallStatus.PENDING, "wipe", {"why": text}, f"wipe\n{text}", confirmation_request=mcp),
            ToolCall("w", ToolCallStatus.PENDING, "fetch", {}, text, confirmation_request=words),
            replace(shell_call(), input_parameters={"command": COMMAND, "description": text}, confirmation_request=run),
        ]

    for at in range(3):
        assert not broken_in(columns, OFFERED, lambda shown, text, at=at: ask(shown, with_details(text)[at]))


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_word_of_a_menu_is_broken(columns: int) -> None:
    def list_them(shown: Shown, text: str) -> None:
        for row in menu_rows([text, f"1  {text}", f"a-name  {text}"], columns, 1, ">"):
            shown.screen.console.print(row)

    assert not broken_in(columns, [*SAID, *OFFERED], list_them)


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_no_word_of_the_choices_is_broken(columns: int, rows: int) -> None:
    def offer(shown: Shown, text: str) -> None:
        options = (*OPTIONS, ConfirmationOption("proceed_always_prefix", _long_name(text), text))
        request = ConfirmationRequest(options, execute_details=ExecuteDetails("make", WORKSPACE))
        question = question_of(replace(shell_call(), confirmation_request=request))
        for fragments in (choice_lines(question, columns), brief_choice_lines(question, columns, rows) or []):
            shown.screen.console.print("".join(fragment for _, fragment in fragments))

    assert not broken_in(columns, OFFERED, offer)


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_each_question_and_menu_has_one_prompt_row_and_fits_the_window(columns: int, rows: int) -> None:
    size = Size(rows=rows, columns=columns)
    questions = [question_of(call) for call in (edit_call(), shell_call(), shell_call(command=COMMAND))]
    menus = [(PLAN_LINES, PLAN_CHOICES), (PART_LINES, len(PART_LINES)), (TELL_LINES, 0)]
    shown = [
        *(
            ChoicePrompt(question, "$", note, lambda: size).message()
            for question in questions
            for note in ("", COMMAND)
        ),
        *(LinePrompt(lines, "$", "$", lambda: size, count).message() for lines, count in menus),
    ]
    for fragments in shown:
        found = rows_of(fragment_list_to_text(to_formatted_text(fragments)), columns)
        assert len(found) <= rows
        assert [row for row in found if row.startswith("  $")] == [found[-1]] == ["  $"]


def _long_name(text: str) -> str:
    return f"Always allow {' '.join(text.split()[:6])}"
