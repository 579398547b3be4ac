"""Messages of a plugin on the wire of docs/reference/editor-port.md, decoded for the Editor port."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.editors.plugin import lsp_diagnostics
from isthmus.editors.plugin import wire as editor_wire
from isthmus.editors.plugin.recoding import Recoder
from isthmus.editors.plugin.wire import Attached, decode_files, decode_initialize, decode_mention, with_form_of
from isthmus.errors import DecodeError
from isthmus.ide.editor import (
    Capability,
    CodeExecution,
    Diagnostic,
    ExecutionImage,
    ExecutionText,
    FileMentioned,
    OpenFile,
    Position,
    Range,
    Selection,
    Severity,
)
from isthmus.text.offsets import OffsetEncoding

HELLO: dict[str, Any] = {"editorInfo": {"name": "ed"}, "capabilities": {}}


def span(*numbers: int) -> dict[str, Any]:
    line, character, end_line, end_character = numbers
    return {
        "start": {"line": line, "character": character},
        "end": {"line": end_line, "character": end_character},
    }


def place(*numbers: int) -> Range:
    return Range(Position(*numbers[:2]), Position(*numbers[2:]))


def hello(**more: Any) -> Attached:
    return decode_initialize(HELLO | more)


def test_the_least_that_a_plugin_can_say() -> None:
    said = hello()
    assert (said.name, said.display_name, said.pid, said.folders, said.is_trusted) == ("ed", "ed", None, (), None)
    assert set(said.unavailable) == set(Capability)
    assert said.encoding is OffsetEncoding.UTF_16
    assert not said.pushes_diagnostics
    assert not said.knows_only_lf


def test_capabilities_are_true_an_object_or_a_reason() -> None:
    said = hello(capabilities={"diff": True, "save": {}, "execute": "no notebooks", "open": False, "close": None})
    missing = set(Capability) - set(said.unavailable)
    assert missing == {Capability.DIFF, Capability.SAVE}
    assert said.unavailable[Capability.EXECUTE] == "no notebooks"
    assert said.unavailable[Capability.OPEN] == said.unavailable[Capability.CLOSE] != ""


def test_diagnostics_can_be_pushed() -> None:
    assert hello(capabilities={"diagnostics": {"push": True}}).pushes_diagnostics
    assert not hello(capabilities={"diagnostics": True}).pushes_diagnostics


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [(["utf-8", "utf-16"], "utf-8"), (["utf-7", "utf-32"], "utf-32"), (["utf-7"], "utf-16"), ([], "utf-16")],
)
def test_the_first_encoding_that_both_know_is_agreed_on(asked: list[str], agreed: str) -> None:
    said = hello(positionEncodings=asked)
    assert editor_wire.encode_initialized(said, "1")["positionEncoding"] == agreed


def test_folders_are_paths_without_what_uris_need() -> None:
    said = hello(workspaceFolders=[{"uri": "file:///a%20b/%C3%A9/", "name": "é"}, {"uri": "file:///"}])
    assert said.folders == ("/a b/é", "/")


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"protocolVersion": 2}, "protocolVersion"),
        ({"editorInfo": {"name": "Ed/../x"}}, "editorInfo.name"),
        ({"editorInfo": None}, "editorInfo: expected an object, received nothing"),
        ({"editorInfo": {}}, "name"),
        ({"editorInfo": {"name": "ed", "processId": "7"}}, "editorInfo.processId"),
        ({"capabilities": []}, "capabilities"),
        ({"workspaceFolders": [{"uri": "http://x/"}]}, r"workspaceFolders\[0\]"),
        ({"newlines": "crlf"}, "newlines"),
    ],
)
def test_what_is_wrong_in_initialize_is_named(more: dict[str, Any], field: str) -> None:
    with pytest.raises(DecodeError, match=field):
        hello(**more)


def test_an_open_file_with_a_selection() -> None:
    item = {
        "uri": "file:///w/a.py", "isActive": True, "focusedAt": 2.5, "selection": span(1, 0, 2, 3),
        "selectedText": "x\nabc", "isDirty": True, "languageId": "python", "lineCount": 9, "unknown": 1,
    }  # fmt: skip
    selection = Selection(place(1, 0, 2, 3), "x\nabc")
    assert decode_files([item]) == (OpenFile("/w/a.py", 2.5, True, Position(2, 3), selection, True, "python", 9),)


def test_an_empty_selection_is_the_cursor_and_a_cursor_may_be_at_the_other_end() -> None:
    (file,) = decode_files([{"uri": "file:///a", "selection": span(1, 4, 1, 4), "selectedText": ""}])
    assert (file.cursor, file.selection) == (Position(1, 4), None)
    backwards = {"uri": "file:///a", "selection": span(1, 4, 0, 0), "cursor": {"line": 0, "character": 0}}
    (file,) = decode_files([backwards | {"selectedText": "text"}])
    assert file.cursor == Position(0, 0)
    assert file.selection == Selection(place(0, 0, 1, 4), "text")


def test_at_most_one_file_is_active_and_none_comes_twice() -> None:
    items = [{"uri": f"file:///{name}", "isActive": True} for name in "abca"]
    assert [(file.path, file.is_active) for file in decode_files(items)] == [
        ("/a", False),
        ("/b", False),
        ("/c", False),
    ]


def test_only_so_many_files_are_taken() -> None:
    items = [{"uri": f"file:///{number}"} for number in range(lsp_diagnostics.MAXIMUM_FILES + 5)]
    assert len(decode_files(items)) == lsp_diagnostics.MAXIMUM_FILES
    assert decode_files(None) == ()


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({}, "a list"),
        ([{"uri": "untitled:1"}], r"openFiles\[0\].uri"),
        ([{"uri": "file:///a", "selection": {"start": 1}}], "start"),
        ([{"uri": "file:///a", "isActive": "yes"}], r"openFiles\[0\].isActive"),
    ],
)
def test_what_is_wrong_in_an_answer_is_named(value: Any, field: str) -> None:
    with pytest.raises(DecodeError, match=field):
        decode_files(value)


@pytest.mark.parametrize(
    ("numbers", "lines"),
    [((4, 0, 7, 0), (4, 6)), ((4, 2, 4, 9), (4, 4)), ((4, 0, 4, 0), (4, 4)), ((7, 0, 4, 0), (4, 6))],
)
def test_a_mention_is_of_the_lines_that_the_range_touches(numbers: tuple[int, ...], lines: tuple[int, int]) -> None:
    assert decode_mention({"uri": "file:///a", "range": span(*numbers)}) == FileMentioned("/a", *lines)
    assert decode_mention({"uri": "file:///a"}) == FileMentioned("/a")


def test_diagnostics_of_one_file_and_of_all() -> None:
    item = {"range": span(0, 1, 0, 2), "message": "bad", "severity": 2, "source": "ruff", "code": 7, "tags": [1]}
    found = Diagnostic("/a", place(0, 1, 0, 2), Severity.WARNING, "bad", "ruff", "7")
    assert lsp_diagnostics.decode_document_report("/a", {"kind": "full", "items": [item]}) == (found,)
    report = {"items": [{"uri": "file:///a", "version": None, "kind": "full", "items": [item]}]}
    assert lsp_diagnostics.decode_workspace_report(report) == (found,)
    assert lsp_diagnostics.decode_pushed({"uri": "file:///a", "diagnostics": [item]}) == ("/a", (found,))


def test_a_diagnostic_without_a_severity_is_an_error() -> None:
    (found,) = lsp_diagnostics.decode_document_report("/a", {"items": [{"range": span(0, 0, 0, 0), "message": ""}]})
    assert (found.severity, found.code) == (Severity.ERROR, None)


def test_the_outputs_of_code_are_decoded_by_their_type_and_others_are_refused() -> None:
    outputs = [{"type": "text", "text": "1\n"}, {"type": "image", "data": "iVBO", "mimeType": "image/png"}]
    shown = (ExecutionText("1\n"), ExecutionImage(b"\x89PN", "image/png"))
    assert editor_wire.decode_execution({"outputs": outputs, "isError": True}) == CodeExecution(shown, True)
    for wrong in ({"type": "image", "data": "!"}, {"type": "html"}):
        with pytest.raises(DecodeError, match=r"outputs\[0\]"):
            editor_wire.decode_execution({"outputs": [wrong]})


@given(st.text(st.sampled_from("a\n\r\ufeff"), max_size=8))
def test_an_editor_that_knows_only_lf_gives_back_an_untouched_text_as_it_was(text: str) -> None:
    original = text.replace("\r\n", "\n").replace("\r", "").replace("\n", "\r\n")
    assert with_form_of(original, original.removeprefix("\ufeff").replace("\r\n", "\n")) == original


def test_changed_lines_get_the_newlines_and_the_mark_of_the_file() -> None:
    assert with_form_of("\ufeffa\r\nb\r\n", "a\nB\nc") == "\ufeffa\r\nB\r\nc"
    assert with_form_of("a\r\nb\n", "a\nb\nc\n") == "a\r\nb\nc\n"
    assert with_form_of("a\r\n", "") == ""


@pytest.mark.anyio
@pytest.mark.parametrize(("encoding", "start", "end"), [("utf-8", 1, 5), ("utf-16", 1, 3), ("utf-32", 1, 2)])
async def test_positions_are_converted_by_the_line_they_are_in(encoding: str, start: int, end: int) -> None:
    async def text_of(path: str) -> str | None:
        return "first\na😀b\n" if path == "/a" else None

    recoder = Recoder(OffsetEncoding(encoding))
    file = OpenFile("/a", 1.0, True, Position(1, end), Selection(place(1, start, 1, end), "😀"))
    assert await recoder.files([file], text_of) == (
        OpenFile("/a", 1.0, True, Position(1, 3), Selection(place(1, 1, 1, 3), "😀")),
    )
    found = Diagnostic("/a", place(1, start, 1, end), Severity.HINT, "")
    assert (await recoder.diagnostics([found], text_of))[0].range == place(1, 1, 1, 3)
    assert await recoder.to_plugin("/a", place(1, 1, 1, 3), text_of) == place(1, start, 1, end)
    unknown = Diagnostic("/b", place(1, start, 1, end), Severity.HINT, "")
    assert await recoder.diagnostics([unknown], text_of) == (unknown,)
