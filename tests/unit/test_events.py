"""Events and the messages of the extension: they survive JSON, and have the fields of the published proto."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.development_tool import (
    ConfirmationRequest,
    ErrorDetails,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.encoding.codec import OneofError, from_json, to_json
from isthmus.errors import DecodeError
from isthmus.events import EVENT_TYPES, TaskState, ToolCallUpdate, event_from_json, event_to_json
from isthmus.internal_events import ContextNote
from support.vocabulary import ENUMS, MESSAGES, any_of, event_types, fields_of, published_proto, values_of

PROTO = published_proto()
PROTO_SCALARS = {"string": str, "int32": int, "bool": bool}
CALL: dict[str, Any] = {
    "tool_call_id": "c",
    "status": ToolCallStatus.PENDING,
    "tool_name": "t",
    "input_parameters": {},
}
"""Fields that every tool call has."""
STATED_OPTIONAL = {
    ("DevelopmentToolEvent", "model"),
    ("DevelopmentToolEvent", "user_tier"),
    ("DevelopmentToolEvent", "error"),
    ("ExecuteSlashCommandResponse", "message"),
    ("ToolCall", "changed_files"),
    ("ConfirmationRequest", "risks"),
}
"""Fields that the extension's text calls optional, or that may be absent, without the proto keyword."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_message_survives_json(kind: type[object], data: st.DataObject) -> None:
    value = data.draw(values_of(kind))
    assert from_json(kind, json.loads(json.dumps(to_json(value)))) == value


@given(any_of(event_types()))
def test_every_event_survives_json(event: Any) -> None:
    assert event_from_json(json.loads(json.dumps(event_to_json(event)))) == event


def test_every_kind_of_event_has_its_name() -> None:
    assert list(EVENT_TYPES.values()) == list(event_types())
    assert list(EVENT_TYPES) == [kind.__name__ for kind in event_types()]
    for wrong in ({}, {"type": "Unknown"}, {"type": None}, {"type": 5}):
        with pytest.raises(DecodeError, match=r"AgentEvent\.type: expected one of Prompt, "):
            event_from_json(wrong)


@pytest.mark.parametrize(
    ("text", "source"), [("The editor shows a.py", "editor"), ("<hook_context>\nTabs.\n</hook_context>", "hook")]
)
def test_the_editor_context_of_an_older_journal_is_a_note(text: str, source: str) -> None:
    assert event_from_json({"type": "EditorContext", "text": text}) == ContextNote(source, text)
    with pytest.raises(DecodeError, match="text"):
        event_from_json({"type": "EditorContext"})


def test_the_proto_has_exactly_the_messages_and_enums_of_the_vocabulary() -> None:
    assert set(PROTO.messages) == {kind.__name__ for kind in MESSAGES}
    assert set(PROTO.enums) == {kind.__name__ for kind in ENUMS}


@pytest.mark.parametrize("kind", ENUMS, ids=lambda kind: kind.__name__)
def test_an_enum_has_the_names_and_numbers_of_the_proto(kind: Any) -> None:
    assert {member.name: member.value for member in kind} == PROTO.enums[kind.__name__]


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_a_message_has_the_fields_of_the_proto(kind: type) -> None:
    ours = {field.name: field for field in fields_of(kind)}
    theirs = {field.name: field for field in PROTO.messages[kind.__name__]}
    assert {name: field.number for name, field in ours.items()} == {name: item.number for name, item in theirs.items()}
    for name, item in theirs.items():
        field = ours[name]
        may_be_absent = item.label == "optional" or item.oneof is not None or (kind.__name__, name) in STATED_OPTIONAL
        assert field.repeated == (item.label == "repeated"), name
        assert field.optional == may_be_absent, name
        expected = PROTO_SCALARS.get(item.kind, item.kind)
        found = field.kind if field.kind in PROTO_SCALARS.values() else getattr(field.kind, "__name__", "")
        assert found == (expected if expected != "google.protobuf.Struct" else "Mapping"), name


ONEOFS: list[tuple[type, str, dict[str, Any]]] = [
    (ToolOutput, "result", {"text": "a", "diff": FileDiff("a", "/a", ""), "structured_data": {}}),
    (
        ConfirmationRequest,
        "details",
        {
            "execute_details": ExecuteDetails("ls"),
            "file_edit_details": FileDiff("a", "/a", ""),
            "mcp_details": McpDetails("s", "t"),
            "generic_details": GenericDetails("d"),
        },
    ),
    (ToolCall, "result", {"output": ToolOutput(), "error": ErrorDetails("x")}),
]


@pytest.mark.requirement("A2A-045", "A2A-056", "A2A-064")
@pytest.mark.parametrize(("kind", "oneof", "members"), ONEOFS, ids=lambda item: getattr(item, "__name__", ""))
def test_a_oneof_holds_one_member_at_most(kind: type, oneof: str, members: dict[str, Any]) -> None:
    assert {field.name for field in PROTO.messages[kind.__name__] if field.oneof == oneof} == set(members)
    required = {ConfirmationRequest: {"options": ()}, ToolCall: CALL}.get(kind, dict[str, Any]())
    for name, value in members.items():
        assert getattr(kind(**required, **{name: value}), name) == value
    first, second, *_ = members.items()
    with pytest.raises(OneofError, match=f"oneof {oneof}"):
        kind(**required, **dict([first, second]))
    alone = [to_json(kind(**required, **dict([item]))) for item in (first, second)]
    with pytest.raises(DecodeError, match=f"^{kind.__name__}: expected at most one of .*oneof {oneof}"):
        from_json(kind, {**alone[0], **alone[1]})


def test_the_oneofs_of_the_proto_are_all_held() -> None:
    found = {(name, field.oneof) for name, items in PROTO.messages.items() for field in items if field.oneof}
    held = {(kind.__name__, oneof) for kind, oneof, _ in ONEOFS}
    assert found == held | {("ToolCallConfirmation", "modified_details")}  # which has one member


def test_the_details_of_a_question_are_the_member_that_is_set() -> None:
    for details in ONEOFS[1][2].items():
        assert ConfirmationRequest((), **dict([details])).details == details[1]
    assert ConfirmationRequest(()).details is None


def test_states_say_what_follows_them() -> None:
    terminal = {"completed", "failed", "canceled", "rejected"}
    assert {state for state in TaskState if state.is_terminal} == terminal
    assert {state for state in TaskState if state.ends_stream} == terminal | {"input-required", "auth-required"}
    assert {state.name for state in ToolCallStatus if state.is_final} == {"SUCCEEDED", "FAILED", "CANCELLED"}


def test_only_running_calls_with_live_content_are_ephemeral() -> None:
    for status in ToolCallStatus:
        for live in (None, "", "text"):
            call = ToolCall("c", status, "t", {}, live_content=live)
            expected = status is ToolCallStatus.EXECUTING and live is not None
            assert ToolCallUpdate(call).is_ephemeral == expected


def test_the_answer_of_appendix_a_is_read() -> None:
    answer = {"tool_call_id": "...", "selected_option_id": "proceed_once"}
    assert from_json(ToolCallConfirmation, answer) == ToolCallConfirmation("...", "proceed_once")
