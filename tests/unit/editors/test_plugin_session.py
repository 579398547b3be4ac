"""Messages of a plugin, in any order and form: an answer, an event, or nothing; never a failure of the companion."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.editors.plugin import lsp_diagnostics
from isthmus.editors.plugin import wire as editor_wire
from isthmus.editors.plugin.session import PluginSession
from isthmus.errors import DecodeError
from isthmus.ide.editor import ContextChanged, DiffRejected
from isthmus.ide.reviews.review import DiffReview
from isthmus.rpc.messages import RpcError

HELLO: dict[str, Any] = {"editorInfo": {"name": "ed"}, "capabilities": {}}
METHODS = st.sampled_from(
    [
        "initialize",
        "initialized",
        "editor/didChange",
        "workspace/didChangeWorkspaceFolders",
        "editor/didChangeTrust",
        "editor/didMention",
        "editor/didAcceptDiff",
        "editor/didRejectDiff",
        "editor/didEditDiff",
        "textDocument/publishDiagnostics",
        "shutdown",
        "exit",
        "$/x",
        "",
    ]
)
NAMES = st.sampled_from(
    [
        *("uri", "range", "start", "end", "line", "character", "id", "text", "diagnostics", "message", "severity"),
        *("isTrusted", "editorInfo", "name", "capabilities", "workspaceFolders", "newlines", "positionEncodings"),
        *("items", "focusedAt", "selection", "selectedText", "lineCount", "outputs", "data", "type", "code", "source"),
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats(allow_nan=False)
    | st.sampled_from(["file:///a", "file:///%00", "r1", "image", "ed", "", "\ufffd"])
    | st.text(max_size=5)
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5))
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=6)


@pytest.mark.slow
@given(st.lists(st.tuples(st.booleans(), METHODS, OBJECTS), max_size=6), st.booleans())
def test_nothing_that_is_said_fails_the_companion(said: list[tuple[bool, str, Any]], is_started: bool) -> None:
    session = PluginSession()
    if is_started:
        session.requested("initialize", HELLO)
    session.reviews["r1"] = DiffReview("r1", "/a", "new\r\n")
    for is_request, method, params in said:
        if is_request:
            with contextlib.suppress(RpcError):
                session.requested(method, params)
        else:
            session.notified(method, params)


@pytest.mark.parametrize(
    "decode",
    [
        editor_wire.decode_files,
        editor_wire.decode_folders,
        editor_wire.decode_closed,
        editor_wire.decode_execution,
        editor_wire.decode_answer,
        lsp_diagnostics.decode_workspace_report,
        partial(lsp_diagnostics.decode_document_report, "/a"),
    ],
)
@given(VALUES)
def test_any_answer_is_taken_or_refused_by_name(decode: Callable[[Any], object], value: Any) -> None:
    for answer in (value, [value], [{"uri": "file:///a", "focusedAt": value}], {"items": [value], "outputs": [value]}):
        with contextlib.suppress(DecodeError):
            decode(answer)


@pytest.mark.parametrize("time", [10**400, -(10**400), float("inf")])
def test_a_time_that_is_none_is_never(time: float) -> None:
    (file,) = editor_wire.decode_files([{"uri": "file:///a", "focusedAt": time}])
    assert file.focused_at == 0


def test_before_initialize_nothing_counts_and_after_shutdown_nothing_does() -> None:
    session = PluginSession()
    assert session.notified("editor/didChange", {}) is None
    with pytest.raises(RpcError) as refused:
        session.requested("shutdown", {})
    assert refused.value.code == -32002
    session.requested("initialize", HELLO)
    assert session.notified("editor/didChange", {}) == ContextChanged()
    assert session.requested("shutdown", {}) is None
    assert session.has_left
    assert session.notified("editor/didChange", {}) is None
    with pytest.raises(RpcError):
        session.requested("initialize", HELLO)


def test_a_review_is_decided_once() -> None:
    session = PluginSession()
    session.requested("initialize", HELLO)
    session.reviews["r1"] = DiffReview("r1", "/a", "new")
    assert session.notified("editor/didRejectDiff", {"id": "r1"}) == DiffRejected("r1")
    assert session.notified("editor/didAcceptDiff", {"id": "r1", "text": "x"}) is None
    assert session.notified("editor/didEditDiff", {"id": "r1", "text": "x"}) is None
