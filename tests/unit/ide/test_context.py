"""The context: its content, order, size, and time of sending."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import DecodeError
from isthmus.ide.context import (
    CUT_MARK,
    ContextFile,
    Cursor,
    IdeContext,
    WorkspaceState,
    context_from_json,
    cut_selection,
    ide_context,
    normalise,
    to_json,
)
from isthmus.ide.context_tracker import ContextTracker, UserFocus
from isthmus.ide.editor import OpenFile, Position, Range, Selection

_TEXT = st.text(max_size=5)
_FILES = st.builds(
    ContextFile,
    path=_TEXT.map(lambda name: "/" + name),
    timestamp=st.integers(0, 20),
    is_active=st.sampled_from([None, True, False]),
    cursor=st.none() | st.builds(Cursor, line=st.integers(1, 9), character=st.integers(1, 9)),
    selected_text=st.none() | _TEXT,
)
_CONTEXTS = st.builds(
    IdeContext,
    st.none()
    | st.builds(
        WorkspaceState,
        open_files=st.none() | st.lists(_FILES, max_size=15).map(tuple),
        is_trusted=st.sampled_from([None, True, False]),
    ),
)


@given(_CONTEXTS)
def test_a_context_survives_json(context: IdeContext) -> None:
    assert context_from_json(to_json(context)) == context


@pytest.mark.slow
@given(_CONTEXTS)
def test_normalising_sorts_limits_and_leaves_at_most_the_newest_active(context: IdeContext) -> None:
    state = normalise(context).workspace_state
    if state is None or state.open_files is None or context.workspace_state is None:
        assert normalise(context) == context
        return
    files = state.open_files
    given_files = context.workspace_state.open_files or ()
    assert len(files) == min(10, len(given_files))
    assert [file.timestamp for file in files] == sorted((f.timestamp for f in given_files), reverse=True)[:10]
    assert all(file == ContextFile(file.path, file.timestamp) for file in files[1:])
    if files and not files[0].is_active:
        assert files[0] == ContextFile(files[0].path, files[0].timestamp)
    assert normalise(normalise(context)) == normalise(context)


def test_absent_members_are_left_out_of_the_json() -> None:
    assert to_json(IdeContext()) == {}
    assert to_json(IdeContext(WorkspaceState())) == {"workspaceState": {}}
    file = ContextFile("/a", 5, True, Cursor(1, 2), "x")
    assert to_json(IdeContext(WorkspaceState((file,), False))) == {
        "workspaceState": {
            "openFiles": [
                {
                    "path": "/a",
                    "timestamp": 5,
                    "isActive": True,
                    "cursor": {"line": 1, "character": 2},
                    "selectedText": "x",
                }
            ],
            "isTrusted": False,
        }
    }


def test_a_malformed_file_is_left_out_and_the_others_stay() -> None:
    files = [{"path": "/a"}, {"timestamp": 1}, 7, {"path": "/b", "timestamp": 1.5, "unknown": 1}]
    context = context_from_json({"workspaceState": {"openFiles": files, "isTrusted": "yes"}})
    assert context == IdeContext(WorkspaceState((ContextFile("/b", 1.5),)))


@pytest.mark.parametrize("value", [None, [], "x", {"workspaceState": 3}, {"workspaceState": {"openFiles": {}}}])
def test_params_of_another_shape_are_refused(value: object) -> None:
    with pytest.raises(DecodeError):
        context_from_json(value)


@given(st.text(st.sampled_from("a😀é"), min_size=0, max_size=40), st.integers(16380, 16390))
def test_a_selection_is_cut_to_the_limit_with_a_mark_and_never_within_a_character(tail: str, length: int) -> None:
    text = "x" * (length - 20) + tail
    units = len(text.encode("utf-16-le")) // 2
    cut = cut_selection(text)
    assert len(cut.encode("utf-16-le")) // 2 <= 16384
    if units <= 16384:
        assert cut == text
    else:
        assert cut.endswith(CUT_MARK)
        assert text.startswith(cut.removesuffix(CUT_MARK))
        assert len(cut.encode("utf-16-le")) // 2 >= 16383


def _file(path: str, focused_at: float, *, is_active: bool = False) -> OpenFile:
    return OpenFile(path, focused_at, is_active, Position(0, 4))


def _tracker(*missing: str) -> ContextTracker:
    return ContextTracker(lambda path: path not in missing)


def _files(sent: UserFocus | None) -> list[ContextFile]:
    assert sent is not None
    context = ide_context(sent)
    assert context.workspace_state is not None
    return list(context.workspace_state.open_files or ())


def test_positions_become_one_based_and_times_milliseconds() -> None:
    selection = Selection(Range(Position(0, 0), Position(2, 4)), "text")
    file = OpenFile("/a", 1.5, True, Position(2, 4), selection)
    assert _files(_tracker().update([file])) == [ContextFile("/a", 1500, True, Cursor(3, 5), "text")]


def test_only_existing_files_with_absolute_paths_writable_as_text_are_sent() -> None:
    files = [_file(path, 1) for path in ("/there", "/deleted", "", "relative", "term://x", "/bad\udcff")]
    assert [file.path for file in _files(_tracker("/deleted").update(files))] == ["/there"]


def test_the_active_file_comes_first_and_is_strictly_the_newest() -> None:
    files = [_file("/late", 9), _file("/active", 5, is_active=True), _file("/early", 1)]
    sent = _files(_tracker().update(files))
    assert [file.path for file in sent] == ["/active", "/late", "/early"]
    assert sent[0].timestamp > sent[1].timestamp > sent[2].timestamp
    assert [file.is_active for file in sent] == [True, None, None]
    assert [file.cursor for file in sent] == [Cursor(1, 5), None, None]


def test_a_file_stays_active_while_the_focus_is_in_something_that_is_no_file() -> None:
    tracker = _tracker()
    tracker.update([_file("/a", 1, is_active=True), _file("/b", 2)])
    sent = _files(tracker.update([_file("/a", 1), _file("/b", 2), _file("/c", 3)]))
    assert [(file.path, file.is_active) for file in sent] == [("/a", True), ("/c", None), ("/b", None)]
    assert [file.is_active for file in _files(tracker.update([_file("/b", 2)]))] == [None]


def test_ten_files_are_sent_and_the_active_one_is_among_them() -> None:
    files = [_file(f"/{number}", number, is_active=number == 0) for number in range(20)]
    sent = _files(_tracker().update(files))
    assert [file.path for file in sent] == ["/0", *(f"/{number}" for number in range(19, 10, -1))]


def test_the_same_context_is_not_sent_twice() -> None:
    tracker = _tracker()
    assert tracker.update([_file("/a", 1)]) is not None
    assert tracker.update([_file("/a", 1)]) is None
    assert tracker.update([_file("/a", 2)]) is not None
    assert [file.timestamp for file in _files(tracker.latest)] == [2000]


def test_a_context_is_due_fifty_milliseconds_after_the_last_change() -> None:
    tracker = _tracker()
    assert tracker.due is None
    tracker.changed(10.0)
    assert tracker.due == pytest.approx(10.05)
    tracker.changed(10.04)
    assert tracker.due == pytest.approx(10.09)


def test_changes_that_never_end_are_sent_all_the_same() -> None:
    tracker = _tracker()
    for step in range(100):
        tracker.changed(10.0 + step * 0.04)
    assert tracker.due == pytest.approx(10.25)


def test_a_snapshot_that_comes_after_a_later_one_is_not_taken() -> None:
    tracker = _tracker()
    first, second = tracker.reading(), tracker.reading()
    assert _files(tracker.update([_file("/new", 2)], reading=second)) == [ContextFile("/new", 2000)]
    assert tracker.update([_file("/old", 1)], reading=first) is None
    assert [file.path for file in tracker.latest.files] == ["/new"]
    assert tracker.update([_file("/old", 1)], reading=tracker.reading()) is not None


def test_a_change_while_the_editor_is_read_is_due_again() -> None:
    tracker = _tracker()
    tracker.changed(10.0)
    tracker.reading()
    tracker.changed(10.1)
    tracker.update([_file("/a", 1)])
    assert tracker.due == pytest.approx(10.15)
