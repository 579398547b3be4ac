import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ide.claude.client_wire import (
    PositionBase,
    ReportedSelection,
    UnknownNotification,
    adapted,
    diagnostics_of,
    dialect_of,
    failure_of,
    folders_of,
    meaning,
    review_answer,
    tabs_of,
    tool_name,
    trust_of,
)
from isthmus.ide.clients.asked_review import Outcome
from isthmus.ide.editor import FileMentioned, Position, Range, Severity
from isthmus.ide.mcp.mcp_client import ToolOutcome, tool_outcome
from isthmus.ide.reviews.review import Accepted, Rejected
from isthmus.rpc.messages import Notification

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.sampled_from(["uri", "diagnostics", "tabs"]), inner, max_size=4)
    ),
    max_leaves=10,
)


def said(*texts: str, is_error: bool = False) -> ToolOutcome:
    return tool_outcome({"content": [{"type": "text", "text": text} for text in texts], "isError": is_error})


def as_json(value: object) -> ToolOutcome:
    return said(json.dumps(value))


def selection(**more: Any) -> Notification:
    return Notification("selection_changed", {"text": "t", "filePath": "/w/a.py", **more})


def test_a_selection_is_read_in_either_counting() -> None:
    places = {"start": {"line": 2, "character": 3}, "end": {"line": 2, "character": 5}}
    told = selection(selection=places)
    assert meaning(told, PositionBase(), ()) == ReportedSelection("/w/a.py", "t", Range(Position(2, 3), Position(2, 5)))
    dialect = dialect_of("claude-code-ide-mcp")
    assert meaning(told, dialect, ()) == ReportedSelection("/w/a.py", "t", Range(Position(1, 2), Position(1, 4)))
    assert not dialect.runs_python


@pytest.mark.parametrize("value", [None, {}, {"start": {"line": None}}, {"start": "x"}, {"start": {"line": -1}}])
def test_a_selection_without_a_place_is_that_of_a_file(value: object) -> None:
    assert meaning(selection(selection=value), PositionBase(), ()) == ReportedSelection("/w/a.py", "t", None)


def test_a_backwards_selection_is_turned_and_a_file_may_be_named_by_its_url_alone() -> None:
    places = {"start": {"line": 2.0, "character": 0}, "end": {"line": 1, "character": 0}}
    told = Notification("selection_changed", {"fileUrl": "file:///w/a%20b.py", "selection": places})
    assert meaning(told, PositionBase(), ()) == ReportedSelection(
        "/w/a b.py", "", Range(Position(1, 0), Position(2, 0))
    )


def test_a_mention_is_of_lines_or_of_a_file_and_may_be_relative() -> None:
    def mention(**params: Any) -> object:
        return meaning(
            Notification("at_mentioned", params), PositionBase(), ("/v", "/w"), lambda path: path == "/w/a.py"
        )

    assert mention(filePath="/x.py", lineStart=3, lineEnd=4) == FileMentioned("/x.py", 3, 4)
    assert mention(filePath="a.py", lineStart=3) == FileMentioned("/w/a.py", 3, 3)
    assert mention(filePath="a.py", lineStart=None, lineEnd=None) == FileMentioned("/w/a.py")
    assert isinstance(mention(filePath="b.py"), UnknownNotification)
    assert isinstance(mention(), UnknownNotification)


@given(st.sampled_from(["selection_changed", "at_mentioned", "log_event"]), JSON)
def test_whatever_is_told_means_something(method: str, params: object) -> None:
    meaning(Notification(method, params), PositionBase(), ("/w",))


@given(st.lists(JSON, max_size=3))
def test_whatever_tools_return_is_read(content: list[object]) -> None:
    texts = tuple({"type": "text", "text": json.dumps(each)} for each in content)
    for outcome in (tool_outcome({"content": content}), tool_outcome({"content": texts})):
        diagnostics_of(outcome)
        tabs_of(outcome)
        folders_of(outcome)
        trust_of(outcome)
        failure_of(outcome)
        review_answer(outcome, "proposed")


@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        (("FILE_SAVED", "theirs\n"), Accepted("theirs\n")),
        (("FILE_SAVED", ""), Accepted("")),
        (("FILE_SAVED",), None),
        (("DIFF_REJECTED", "tab"), Rejected()),
        (("DIFF_REJECTED", "tab", "why"), Rejected(reason="why")),
        (("DIFF_REJECTED",), Rejected()),
        (("TAB_CLOSED",), Rejected()),
        (("Error: no window",), None),
        ((), None),
    ],
)
def test_only_what_is_a_decision_is_taken_for_one(texts: tuple[str, ...], answer: Outcome | None) -> None:
    assert review_answer(said(*texts), "proposed\n") == answer


def test_an_error_is_never_a_decision() -> None:
    assert review_answer(said("FILE_SAVED", "x", is_error=True), "proposed\n") is None


@pytest.mark.parametrize(
    ("proposed", "returned", "kept"),
    [
        ("a\r\nb\r\n", "a\nb\n", "a\r\nb\r\n"),
        ("a\r\nb", "a\nb\n", "a\r\nb"),
        ("a\nb", "a\nb\n", "a\nb"),
        ("a\nb", "a\nc\n", "a\nc\n"),
        ("a\r\nb\n", "a\nb\n", "a\nb\n"),
        ("\ufeffa\n", "b\n", "\ufeffb\n"),
        ("a\n", "a\n", "a\n"),
    ],
)
def test_an_editor_that_joins_lines_anew_changes_only_what_the_user_changed(
    proposed: str, returned: str, kept: str
) -> None:
    assert review_answer(said("FILE_SAVED", returned), proposed) == Accepted(kept)


def test_arguments_get_the_names_that_the_schema_has() -> None:
    arguments = {"filePath": "/w/a b.py", "preview": False}
    assert adapted(arguments, ()) == arguments
    assert adapted(arguments, ("filePath",)) == {"filePath": "/w/a b.py"}
    assert adapted(arguments, ("uri", "preview")) == {"uri": "file:///w/a%20b.py", "preview": False}
    assert adapted(arguments, ("path",)) == {"path": "/w/a b.py"}
    assert adapted({"makeFrontmost": True}, ("make_frontmost",)) == {"make_frontmost": True}


def test_tools_are_found_under_either_case() -> None:
    assert tool_name("openDiff", ("open_diff", "close_tab")) == "open_diff"
    assert tool_name("close_tab", ("closeTab",)) == "closeTab"
    assert tool_name("openDiff", ("getDiagnostics",)) == "openDiff"


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (said("Opened file: /w/a.py"), None),
        (said("FILE_OPENED"), None),
        (said("no", is_error=True), "no"),
        (said('{"success": false, "message": "Document not open: /w/a.py"}'), "Document not open: /w/a.py"),
        (said('{"success": true}'), None),
        (said("Error opening file: Wrong type argument"), "Error opening file: Wrong type argument"),
    ],
)
def test_a_failure_is_known_however_it_is_said(outcome: ToolOutcome, reason: str | None) -> None:
    assert failure_of(outcome) == reason


def test_tabs_are_read_with_what_there_is_of_them() -> None:
    tabs = tabs_of(
        as_json(
            {
                "tabs": [
                    {"uri": "file:///w/a.py", "isActive": True, "isGroupActive": False, "isDirty": True},
                    {"uri": "untitled:1", "isActive": True},
                    {
                        "fileName": "x",
                        "uri": "file:///w/b.py",
                        "isActive": True,
                        "languageId": "python",
                        "lineCount": 3,
                    },
                    {"path": "/w/c.py", "isActive": True, "label": "c", "isUntitled": True},
                    5,
                ]
            }
        )
    )
    assert tabs is not None
    assert [(tab.path, tab.is_active, tab.is_dirty, tab.line_count) for tab in tabs] == [
        ("/w/a.py", False, True, None),
        ("/w/b.py", True, None, 3),
    ]
    assert tabs_of(as_json({"editors": [{"uri": "file:///w/a.py", "name": "a.py"}]})) is not None
    assert tabs_of(said("nothing")) is None


def test_folders_are_read_as_paths_or_uris() -> None:
    assert folders_of(as_json({"folders": [{"path": "/w/"}, {"uri": "file:///v/x%20y"}, "/u", {"name": "z"}]})) == (
        "/w",
        "/v/x y",
        "/u",
    )


def test_severities_are_words_or_numbers_and_entries_without_a_place_are_left_out() -> None:
    place = {"start": {"line": 0, "character": 0}}
    entries = [
        {"message": str(severity), "severity": severity, "range": place}
        for severity in ("Error", "Warning", "Info", "Information", "Hint", 1, 4, 9, None, True)
    ]
    outcome = as_json([{"uri": "file:///w/a.py", "diagnostics": [*entries, {"message": "nowhere"}, 7]}])
    assert [found.severity for found in diagnostics_of(outcome)] == [
        Severity.ERROR,
        Severity.WARNING,
        Severity.INFORMATION,
        Severity.INFORMATION,
        Severity.HINT,
        Severity.ERROR,
        Severity.HINT,
        Severity.INFORMATION,
        Severity.INFORMATION,
        Severity.INFORMATION,
    ]
    assert len(diagnostics_of(outcome, limit=3)) == 3
