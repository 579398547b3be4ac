"""Notes in stored events about the time before them: tokens of replies, and checkpoints."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isthmus.a2a.protocol.task_encoder import StatusEncoder
from isthmus.a2a.v1.encoder import ShapeV1
from isthmus.client import Delivery, TaskSnapshot
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import AgentEvent, Prompt, StateChange, TaskState, TextContent, ToolCallUpdate
from isthmus.internal_events import Checkpoint, Compacted, ModelReply, ModelUsed, ToolResultRecorded
from isthmus.media import PDF, PNG, Media

URI = "https://example.org/extension"
CALL = ToolCall("call", ToolCallStatus.EXECUTING, "replace", {})
EVENTS: tuple[AgentEvent, ...] = (
    TextContent("m", "Hello"),
    ModelReply("m", "model", {}, 100, 20, 80, 5),
    ModelReply("m", "model", {}, 1, 2, 3, 4, cost=12_300_000_000),
    ToolCallUpdate(CALL),
    Checkpoint("one", "call"),
    Checkpoint("two", "call"),
    ToolCallUpdate(CALL),
    ModelUsed("other", 5, 1, requests=3, cost=200_000_000_000, unpriced=2),
    Compacted("s", 1, 9, 2, 4, 1, model="model", cost=10**12),
    StateChange(TaskState.COMPLETED),
)


def notes(after: int = 0, uri: str | None = URI, *, has_notes: bool = True) -> list[Mapping[str, Any]]:
    """Return the notes in the metadata of each item of a stream that begins after an event."""
    snapshot = TaskSnapshot("task", "context", TaskState.WORKING, 0, "/", 0.0, 0.0)
    encoder = StatusEncoder(ShapeV1(), snapshot, uri, has_notes=has_notes)
    items: list[Mapping[str, Any]] = []
    for seq, event in enumerate(EVENTS, 1):
        if seq > after:
            items += encoder.encode(Delivery(seq, 0.0, event))
    found = [item["statusUpdate"].get("metadata", {}).get(URI, {}) for item in items]
    return [{key: value for key, value in item.items() if key in ("usage", "checkpoints")} for item in found]


USAGE = {
    "input_tokens": 101,
    "output_tokens": 22,
    "cached_tokens": 83,
    "thought_tokens": 9,
    "cost": {"amount": 0.0123, "currency": "USD"},
    "unpriced_requests": 1,
}
LATER = {
    "input_tokens": 9,
    "output_tokens": 2,
    "cached_tokens": 0,
    "thought_tokens": 0,
    "cost": {"amount": 1.2, "currency": "USD"},
    "unpriced_requests": 2,
}
CHECKPOINTS = [{"checkpoint_id": name, "tool_call_id": "call"} for name in ("one", "two")]


def test_the_next_event_tells_tokens_and_checkpoints_once() -> None:
    assert notes() == [{}, {"usage": USAGE}, {"checkpoints": CHECKPOINTS}, {"usage": LATER}]


def test_a_cost_is_told_where_a_price_was_known_and_the_requests_without() -> None:
    for cost, told in ((0, {"cost": {"amount": 0.0, "currency": "USD"}}), (None, {"unpriced_requests": 1})):
        snapshot = TaskSnapshot("task", "context", TaskState.WORKING, 0, "/", 0.0, 0.0)
        encoder = StatusEncoder(ShapeV1(), snapshot, URI, has_notes=True)
        encoder.encode(Delivery(1, 0.0, ModelReply("m", "model", {}, 1, 1, cost=cost)))
        (item,) = encoder.encode(Delivery(2, 0.0, ToolCallUpdate(CALL)))
        usage = item["statusUpdate"]["metadata"][URI]["usage"]
        assert {name: value for name, value in usage.items() if not name.endswith("_tokens")} == told


def test_a_client_that_goes_on_after_an_event_misses_and_doubles_nothing() -> None:
    whole = notes()
    assert [notes(after=1), notes(after=4), notes(after=7)] == [whole[1:], whole[2:], whole[3:]]


def test_progress_that_is_not_stored_tells_nothing() -> None:
    snapshot = TaskSnapshot("task", "context", TaskState.WORKING, 0, "/", 0.0, 0.0)
    encoder = StatusEncoder(ShapeV1(), snapshot, URI, has_notes=True)
    encoder.encode(Delivery(1, 0.0, Checkpoint("one", "call")))
    (progress,) = encoder.encode(Delivery(None, 0.0, ToolCallUpdate(CALL)))
    (stored,) = encoder.encode(Delivery(2, 0.0, ToolCallUpdate(CALL)))
    assert "checkpoints" not in progress["statusUpdate"]["metadata"][URI]
    assert stored["statusUpdate"]["metadata"][URI]["checkpoints"] == CHECKPOINTS[:1]


def test_without_the_extension_or_a_request_for_notes_nothing_is_told() -> None:
    assert notes(uri=None) == [{}]
    assert notes(has_notes=False) == [{}, {}, {}, {}]


def test_the_next_event_names_the_pictures_that_came_before_it() -> None:
    snapshot = TaskSnapshot("task", "context", TaskState.WORKING, 0, "/", 0.0, 0.0)
    encoder = StatusEncoder(ShapeV1(), snapshot, URI, has_notes=True)
    media = (Media(PNG, Path("/files/a.png")), Media(PDF, Path("/files/b.pdf")), Media(PNG, Path("/files/c.png")))
    events = (
        Prompt("m", "look", None, media=media),
        ToolResultRecorded("call", "seen", media=media[:1]),
        TextContent("t", "I see."),
    )
    items = [item for seq, event in enumerate(events, 1) for item in encoder.encode(Delivery(seq, 0.0, event))]
    assert [item["statusUpdate"]["metadata"][URI].get("pictures") for item in items] == [
        [{"message_id": "m", "event": 1, "numbers": [0, 2]}, {"tool_call_id": "call", "event": 2, "numbers": [0]}]
    ]
