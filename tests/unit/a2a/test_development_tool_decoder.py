"""Events of unknown kinds and with unknown enums, as a client decodes them."""

from typing import Any

import pytest

from isthmus.a2a.protocol.extension import URI
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.errors import DecodeError
from isthmus.events import Prompt, TaskState, ToolCallUpdate
from support.client_decoding import Decoding

KINDS = (
    "expected one of DEVELOPMENT_TOOL_EVENT_KIND_UNSPECIFIED, TOOL_CALL_CONFIRMATION, TOOL_CALL_UPDATE, TEXT_CONTENT,"
    " STATE_CHANGE, THOUGHT"
)
STATUSES = "expected one of STATUS_UNSPECIFIED, PENDING, EXECUTING, SUCCEEDED, FAILED, CANCELLED"


def update(kind: object, status: object) -> dict[str, Any]:
    """Return an event with a tool call."""
    call: dict[str, Any] = {"tool_call_id": "a", "status": status, "tool_name": "t", "input_parameters": {}}
    message: dict[str, Any] = {
        "kind": "message",
        "role": "agent",
        "messageId": "m",
        "parts": [{"kind": "data", "data": call}],
    }
    told: dict[str, Any] = {"state": "working", "message": message}
    metadata = {URI: {"kind": kind, "model": "m"}}
    return {
        "kind": "status-update",
        "taskId": "t",
        "contextId": "c",
        "status": told,
        "final": False,
        "metadata": metadata,
    }


@pytest.mark.parametrize(("kind", "status"), [("TOOL_CALL_UPDATE", "EXECUTING"), (2, 2)])
def test_enums_come_by_name_or_number(kind: object, status: object) -> None:
    (delivery,) = Decoding(URI, TaskState.WORKING).decode(update(kind, status))
    assert delivery.event == ToolCallUpdate(ToolCall("a", ToolCallStatus.EXECUTING, "t", {}))


@pytest.mark.parametrize(
    ("kind", "status", "message"),
    [
        ("NEW_KIND", 2, f"DevelopmentToolEvent.kind: {KINDS}, received str 'NEW_KIND'"),
        (99, 2, f"DevelopmentToolEvent.kind: {KINDS}, received int 99"),
        (2, "WAITING", f"ToolCall.status: {STATUSES}, received str 'WAITING'"),
        (2, 99, f"ToolCall.status: {STATUSES}, received int 99"),
        (2, -1, f"ToolCall.status: {STATUSES}, received int -1"),
    ],
)
def test_a_kind_or_a_number_that_no_enum_has_is_refused_by_its_field(
    kind: object, status: object, message: str
) -> None:
    decoding = Decoding(URI, TaskState.WORKING)
    with pytest.raises(DecodeError) as refused:
        decoding.decode(update(kind, status))
    assert str(refused.value) == message
    (delivery,) = decoding.decode(update(2, 2))
    assert isinstance(delivery.event, ToolCallUpdate)


@pytest.mark.parametrize("state", [TaskState.SUBMITTED, TaskState.WORKING, TaskState.COMPLETED])
def test_a_replay_has_the_same_events_whatever_the_state_was_when_it_began(state: TaskState) -> None:
    decoding = Decoding(URI, state)
    decoding.decoder.yields_prompts = True
    message = {"kind": "message", "role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "go"}]}
    task = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "submitted"}, "history": [message]}
    assert [(item.seq, item.event) for item in decoding.decode(task, 1)] == [(1, Prompt("m", "go"))]
    assert not decoding.at_rest
