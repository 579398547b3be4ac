"""A2A 0.3 on the wire, sans-I/O: the decoder reads the encoder's output, for every event and snapshot."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.a2a.protocol.extension import URI
from isthmus.a2a.v03.wire import WireV03
from isthmus.client import Delivery, HistoryMessage, TaskSnapshot
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
)
from isthmus.encoding.codec import to_json
from isthmus.encoding.json_text import decode, encode
from isthmus.errors import DecodeError
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    ConfirmationAccepted,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from isthmus.internal_events import ContextNote, ModelReply, ToolResultRecorded
from support.client_decoding import Decoding, decoded_snapshot
from support.vocabulary import values_of

WORDS = st.text(min_size=1, max_size=20)
SNAPSHOT = TaskSnapshot("task", "context", TaskState.WORKING, 1, "/w", 0, 0, model="m")
SENT: st.SearchStrategy[AgentEvent] = st.one_of(
    values_of(Thought),
    values_of(ToolCall).map(ToolCallUpdate),  # its other members are only for the agent
    values_of(RetryNotice),
    st.builds(TextContent, WORDS, WORDS),
    st.builds(ConfirmationAccepted, values_of(ToolCallConfirmation), WORDS),
    st.builds(
        StateChange,
        st.sampled_from([state for state in TaskState if state is not TaskState.SUBMITTED]),
        st.none() | WORDS,
        st.none() | WORDS,
    ),
)
TIMES = st.integers(0, 4_000_000_000_000).map(lambda milliseconds: milliseconds / 1000)
QUESTION = ConfirmationRequest((ConfirmationOption("proceed_once", "Yes"),))
PENDING = ToolCall("c", ToolCallStatus.PENDING, "write_file", {"a": 1}, confirmation_request=QUESTION)


def over_the_wire(value: Any) -> Any:
    """Return a value as it arrives at the other side."""
    return decode(encode(value))


@given(SENT, TIMES, st.none() | st.integers(1, 2**40), st.booleans())
def test_every_event_arrives_as_it_was_sent(event: AgentEvent, at: float, seq: int | None, final: bool) -> None:
    (encoded,) = over_the_wire(WireV03().stream(SNAPSHOT, URI).encode(Delivery(seq, at, event), final=final))
    decoder = Decoding(URI, TaskState.WORKING)
    (found,) = decoder.decode(encoded, seq)
    assert (found.seq, found.event) == (seq, event)
    assert found.at == pytest.approx(at, abs=0.001)
    if isinstance(event, StateChange):
        assert decoder.is_final == final
        assert decoder.at_rest == event.state.ends_stream


@given(SENT, st.booleans())
def test_metadata_is_the_extension_alone(event: AgentEvent, final: bool) -> None:
    (encoded,) = WireV03().stream(SNAPSHOT, URI).encode(Delivery(1, 0, event), final=final)
    assert list(encoded["metadata"]) == [URI]
    assert encoded["metadata"][URI]["model"] == "m"
    assert "metadata" not in encoded["status"]["message"]


@given(st.sampled_from([Prompt, ContextNote, ModelReply, ToolResultRecorded]).flatmap(values_of))
def test_what_only_the_agent_needs_is_never_sent(event: Any) -> None:
    for uri in (URI, None):
        assert not WireV03().stream(SNAPSHOT, uri).encode(Delivery(1, 0, event))


@given(SENT)
def test_a_plain_client_gets_states_alone_and_texts_if_it_asks(event: AgentEvent) -> None:
    encoded = WireV03().stream(SNAPSHOT, None).encode(Delivery(1, 0, event))
    assert len(encoded) == isinstance(event, StateChange)
    with_texts = WireV03(progress_text=True).stream(SNAPSHOT, None).encode(Delivery(1, 0, event))
    assert len(with_texts) == isinstance(event, (TextContent, StateChange))
    assert all("metadata" not in item for item in with_texts)


@st.composite
def snapshots(draw: st.DrawFn) -> TaskSnapshot:
    state = draw(st.sampled_from(list(TaskState)))
    history = [
        HistoryMessage(f"m{index}", draw(st.sampled_from(["user", "agent"])), draw(WORDS))
        for index in range(draw(st.integers(0, 4)))
    ]
    error = draw(st.none() | WORDS)
    return TaskSnapshot(
        task_id=draw(WORDS),
        context_id=draw(WORDS),
        state=state,
        seq=draw(st.integers(0, 2**40)),
        workspace=draw(WORDS),
        created_at=draw(TIMES),
        updated_at=draw(TIMES),
        title=draw(st.text(max_size=10)),
        model=draw(st.text(max_size=10)),
        error=error,
        reason=draw(st.none() | WORDS) if error is not None else None,
        pending=(PENDING,) * draw(st.integers(0, 2)) if state is TaskState.INPUT_REQUIRED else (),
        history=tuple(history),
    )


@given(snapshots())
def test_every_snapshot_arrives_as_it_was_sent(snapshot: TaskSnapshot) -> None:
    found = decoded_snapshot(over_the_wire(WireV03().task(snapshot, URI)), URI)
    assert found.created_at == pytest.approx(snapshot.created_at, abs=0.001)
    assert found.updated_at == pytest.approx(snapshot.updated_at, abs=0.001)
    times = {"created_at": snapshot.created_at, "updated_at": snapshot.updated_at}
    assert replace(found, **times) == snapshot


def test_a_question_that_stands_only_in_the_state_change_is_told_before_it() -> None:
    change = Delivery(5, 0, StateChange(TaskState.INPUT_REQUIRED))
    (encoded,) = WireV03().stream(SNAPSHOT, URI).encode(change, final=True, pending=[PENDING])
    decoder = Decoding(URI)
    told = decoder.decode(encoded, 5)
    assert [(item.seq, item.event) for item in told] == [
        (None, ToolCallUpdate(PENDING)),
        (5, StateChange(TaskState.INPUT_REQUIRED)),
    ]
    assert [item.event for item in decoder.decode(encoded, 6)] == [StateChange(TaskState.INPUT_REQUIRED)]


def update(state: str = "working", kind: object = "TOOL_CALL_UPDATE", **data: object) -> dict[str, Any]:
    """Return a status-update event of a server."""
    parts = [{"kind": "data", "data": data}] if data else []
    status = {"state": state, "message": {"messageId": "m", "role": "agent", "parts": parts}}
    return {"kind": "status-update", "status": status, "metadata": {URI: {"kind": kind}}}


@pytest.mark.parametrize(
    ("item", "path"),
    [
        (None, "stream item"),
        ({}, "stream item.kind"),
        ({"kind": "other"}, "stream item.kind"),
        ({"kind": "status-update"}, "status-update.status"),
        ({"kind": "status-update", "status": {"state": "sleeping"}}, "status.state"),
        ({"kind": "artifact-update"}, "artifact-update.artifact"),
        ({"kind": "task", "id": "x"}, "Task.status"),
        ({"kind": "task", "status": {"state": "working"}}, "Task.id"),
        (update(kind="SOMETHING"), "DevelopmentToolEvent.kind"),
        (update(tool_call_id="c"), "ToolCall.status"),
        (update(kind="THOUGHT", subject=5), "AgentThought.subject"),
        (update(kind="TOOL_CALL_CONFIRMATION", tool_call_id="c"), "ToolCallConfirmation.selected_option_id"),
    ],
)
def test_an_item_that_does_not_fit_is_named(item: object, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        Decoding(URI).decode(item, 1)
    assert caught.value.path == path


def test_the_question_may_come_under_the_kind_of_confirmations() -> None:
    (told,) = Decoding(URI).decode(update(kind=1, **to_json(PENDING)), None)
    assert told.event == ToolCallUpdate(PENDING)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("rejected", StateChange(TaskState.REJECTED)),
        ("auth-required", StateChange(TaskState.AUTH_REQUIRED)),
    ],
)
def test_states_of_other_agents_are_told_as_they_are(state: str, expected: StateChange) -> None:
    (told,) = Decoding(None).decode({"kind": "status-update", "status": {"state": state}}, None)
    assert told.event == expected


def test_a_message_instead_of_a_task_is_text_and_the_end() -> None:
    decoder = Decoding(None)
    told = decoder.decode({"kind": "message", "messageId": "m", "parts": [{"kind": "text", "text": "Hi"}]}, None)
    assert [item.event for item in told] == [AgentMessage("m", "Hi"), StateChange(TaskState.COMPLETED)]
    assert decoder.is_final
