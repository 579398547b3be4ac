from dataclasses import replace

import pytest
from rich.cells import cell_len

from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    FileDiff,
    GenericDetails,
    ModifiedFileDetails,
    ToolCall,
    ToolCallStatus,
)
from isthmus.terminal.diff import DiffLine, LineKind, changed_lines, diff_lines
from isthmus.terminal.questions.hunk_choice import can_choose, hunk_lines, problem_with, with_chosen
from isthmus.terminal.questions.questions import question_of, refusal
from isthmus.terminal.screen.blocks import choice_lines, question_block
from isthmus.terminal.screen.screen import ASCII
from support.front_program import NEW, edit_call, shell_call


def test_options_are_numbered_and_an_edit_is_offered_for_a_file_alone() -> None:
    assert [(choice.key, choice.name) for choice in question_of(edit_call()).choices] == [
        ("1", "Allow once"),
        ("2", "Always allow"),
        ("3", "Reject"),
        ("e", "Edit first"),
        ("t", "Reject and tell"),
    ]
    assert [choice.key for choice in question_of(shell_call()).choices] == ["1", "2", "3", "t"]


@pytest.mark.parametrize(
    ("typed", "option"),
    [
        ("1", "proceed_once"),
        (" 2 ", "proceed_always_tool"),
        ("y", "proceed_once"),
        ("YES", "proceed_once"),
        ("n", "cancel"),
        ("reject", "cancel"),
        ("proceed_always_tool", "proceed_always_tool"),
    ],
)
def test_an_option_can_be_typed_by_number_name_or_id(typed: str, option: str) -> None:
    choice = question_of(edit_call()).choice(typed)
    assert choice is not None
    assert choice.option_id == option


@pytest.mark.parametrize("typed", ["", " ", "0", "4", "12", "yess", "-"])
def test_nothing_else_is_an_answer(typed: str) -> None:
    assert question_of(edit_call()).choice(typed) is None


def test_yes_means_nothing_where_no_option_is_called_so() -> None:
    request = ConfirmationRequest((ConfirmationOption("other", "Other"),), generic_details=GenericDetails("x"))
    call = ToolCall("x", ToolCallStatus.PENDING, "odd", {}, confirmation_request=request)
    assert question_of(call).choice("y") is None
    assert refusal(call) is None


def test_edits_go_along_with_a_yes_and_not_with_a_no() -> None:
    question = question_of(edit_call(), NEW + "# mine\n")
    yes, always, no, edit, tell = question.choices
    assert edit.is_edit
    assert tell.is_telling
    assert question.file_diff is not None
    assert question.file_diff.new_content == NEW + "# mine\n"
    for choice in (yes, always):
        details = question.confirmation(choice).file_details
        assert details is not None
        assert details.new_content == NEW + "# mine\n"
    assert question.confirmation(no).file_details is None
    assert question_of(edit_call()).confirmation(yes).file_details is None


def test_a_call_is_refused_with_its_own_option() -> None:
    answer = refusal(edit_call())
    assert answer is not None
    assert (answer.tool_call_id, answer.selected_option_id) == ("edit-1", "cancel")


def test_diff_lines_are_numbered_in_the_file_they_belong_to() -> None:
    old = "".join(f"line {number}\n" for number in range(1, 21))
    new = old.replace("line 3\n", "line three\nand more\n").replace("line 20\n", "")
    diff = FileDiff("a.txt", "/w/a.txt", new, old)
    assert diff_lines(diff) == [
        DiffLine(LineKind.CONTEXT, 1, "line 1"),
        DiffLine(LineKind.CONTEXT, 2, "line 2"),
        DiffLine(LineKind.REMOVED, 3, "line 3"),
        DiffLine(LineKind.ADDED, 3, "line three"),
        DiffLine(LineKind.ADDED, 4, "and more"),
        DiffLine(LineKind.CONTEXT, 5, "line 4"),
        DiffLine(LineKind.CONTEXT, 6, "line 5"),
        DiffLine(LineKind.CONTEXT, 7, "line 6"),
        DiffLine(LineKind.GAP, 0, ""),
        DiffLine(LineKind.CONTEXT, 18, "line 17"),
        DiffLine(LineKind.CONTEXT, 19, "line 18"),
        DiffLine(LineKind.CONTEXT, 20, "line 19"),
        DiffLine(LineKind.REMOVED, 20, "line 20"),
    ]
    assert changed_lines(diff) == (2, 2)


def test_a_new_file_is_all_added_and_a_missing_final_newline_is_told() -> None:
    diff = FileDiff("a.txt", "/w/a.txt", "one\n-- two")
    assert diff_lines(diff) == [
        DiffLine(LineKind.ADDED, 1, "one"),
        DiffLine(LineKind.ADDED, 2, "-- two"),
        DiffLine(LineKind.NOTE, 0, "No newline at end of file"),
    ]
    assert changed_lines(FileDiff("a.txt", "/w/a.txt", "", None)) == (0, 0)


def test_lines_that_look_like_headers_of_a_diff_are_lines() -> None:
    diff = FileDiff("a.txt", "/w/a.txt", "++ b\n@@ -1 +1 @@\n", "-- a\n@@ -1 +1 @@\n")
    assert [(line.kind, line.text) for line in diff_lines(diff)] == [
        (LineKind.REMOVED, "-- a"),
        (LineKind.ADDED, "++ b"),
        (LineKind.CONTEXT, "@@ -1 +1 @@"),
    ]


def test_y_and_n_answer_a_servers_question_too() -> None:
    def chosen(typed: str, *ids: str) -> str | None:
        options = tuple(ConfirmationOption(option, option.upper()) for option in ids)
        request = ConfirmationRequest(options, generic_details=GenericDetails("?"))
        call = ToolCall("c", ToolCallStatus.PENDING, "elicitation", {}, confirmation_request=request)
        choice = question_of(call).choice(typed)
        return choice.option_id if choice is not None else None

    assert chosen("y", "accept", "decline", "cancel") == "accept"
    assert chosen("n", "accept", "decline", "cancel") == "decline"
    assert [chosen(typed, "yes", "no", "decline", "cancel") for typed in ("y", "yes", "n", "no")] == [
        "yes", "yes", "no", "no",
    ]  # fmt: skip
    assert chosen("y", "choice-1", "decline", "cancel") is None
    assert chosen("n", "proceed_once", "cancel") == "cancel"


def test_a_servers_document_is_shown_whole_and_goes_along_edited_unless_declined() -> None:
    document = FileDiff("s-request.json", "/w/s-request.json", '{\n  "name": null\n}\n')
    options = tuple(ConfirmationOption(option, option) for option in ("accept", "decline", "cancel"))
    request = ConfirmationRequest(options, file_edit_details=document)
    call = ToolCall("c", ToolCallStatus.PENDING, "elicitation", {}, confirmation_request=request)
    question = question_of(call, '{"name": "Ada"}')
    shown = [line.plain for line in question_block(question, "/w", 80, ASCII)]
    assert shown[1].strip() == '{"name": "Ada"}'
    assert "new file" not in shown[0]
    assert question.choices[-1].description == "opens the document in your $EDITOR"
    answers = {choice.option_id: question.confirmation(choice) for choice in question.choices if choice.option_id}
    assert answers["accept"].file_details == ModifiedFileDetails('{"name": "Ada"}')
    assert answers["decline"].file_details is None


def test_an_agents_own_options_count_by_their_kind_whatever_their_ids() -> None:
    options = (
        ConfirmationOption("keep", "Keep it out", kind="reject_once"),
        ConfirmationOption("never", "Never", kind="reject_always"),
        ConfirmationOption("cancel", "Go on", kind="allow_once"),
    )
    request = ConfirmationRequest(options, file_edit_details=FileDiff("a.txt", "/w/a.txt", "one\n"))
    call = ToolCall("c", ToolCallStatus.PENDING, "write", {}, confirmation_request=request)
    question = question_of(call, "mine\n")
    sent = {choice.option_id: question.confirmation(choice).file_details for choice in question.choices}
    assert (sent["keep"], sent["never"]) == (None, None)
    assert sent["cancel"] == ModifiedFileDetails("mine\n")
    assert {choice.option_id for choice in question.choices if choice.is_refusal} == {"keep", "never"}
    for typed, option in (("y", "cancel"), ("n", "keep")):
        choice = question.choice(typed)
        assert choice is not None
        assert choice.option_id == option


COVERED = (
    "For the rest of this session, commands that begin with these words run without asking; options that write files or"
    " run other programs, and output into files, are asked each time"
)


@pytest.mark.parametrize("width", [24, 40, 80, 200])
def test_what_an_answer_covers_is_wrapped_and_never_cut(width: int) -> None:
    options = (
        ConfirmationOption("proceed_once", "Allow once"),
        ConfirmationOption("proceed_always_prefix", "Always allow git status …", COVERED),
        ConfirmationOption("proceed_always_server", "Always allow all tools of 漢字の道具", "For the rest of it"),
    )
    request = ConfirmationRequest(options, generic_details=GenericDetails("x"))
    call = ToolCall("c", ToolCallStatus.PENDING, "odd", {}, confirmation_request=request)
    shown = "".join(text for _, text in choice_lines(question_of(call), width))
    assert COVERED in " ".join(shown.split())
    assert all(cell_len(line) < width for line in shown.splitlines())


def test_a_question_says_what_it_wants_touches_and_covers() -> None:
    wanted = replace(edit_call(), input_parameters={"file_path": "greeting.py", "instruction": "Use an f-string"})
    created = edit_call(name="new.py", old=None, new="one\ntwo\n")

    def head(call: ToolCall, rows: int) -> list[str]:
        return [line.plain for line in question_block(question_of(call), "/workspace", 80, ASCII)[:rows]]

    assert head(wanted, 3) == [
        "? Change greeting.py  +1 -1",
        '    "Use an f-string"',
        "    touches this file, nothing else - covers this change only",
    ]
    assert head(created, 2) == ["? Create new.py  +2 -0", "    a new file, 2 lines - covers this file only"]
    assert head(shell_call(), 3) == [
        "? Run a command",
        "    runs in /workspace - covers this command, once",
        "    $ make test",
    ]


def test_an_edit_with_several_hunks_can_be_accepted_in_part() -> None:
    diff = FileDiff("a.py", "/w/a.py", "A\nb\nC\nc2\n", "a\nb\nc\n")
    request = ConfirmationRequest((ConfirmationOption("proceed_once", "Allow once"),), file_edit_details=diff)
    call = ToolCall("x", ToolCallStatus.PENDING, "replace", {}, confirmation_request=request)
    choice = question_of(call).choice("h")
    assert choice is not None
    assert (choice.name, choice.is_choosing_hunks, choice.is_edit) == ("Some hunks", True, False)
    assert hunk_lines(diff)[:2] == ("1  line 1   - a   + A", "2  line 3   - c   + C (and 1 more)")
    assert with_chosen(diff, "2") == "a\nb\nC\nc2\n"
    assert problem_with(diff, "1-2") is None
    assert problem_with(diff, "x") == "expected numbers as in 1,3 or 2-4, received x"
    assert "no hunk has the number 3" in (problem_with(diff, "3") or "")
    notebook = FileDiff("a.ipynb", "/w/a.ipynb", diff.new_content, diff.old_content)
    assert not can_choose(notebook)
