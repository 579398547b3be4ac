"""Members of a call that the extension's document does not name: only clients that ask for notes receive them."""

from collections.abc import Iterator
from typing import Any, cast

from hypothesis import given

from isthmus.a2a.protocol.notes import call_without_notes, snapshot_without_notes
from isthmus.client import TaskSnapshot
from isthmus.development_tool import ToolCall
from isthmus.encoding.codec import to_json
from isthmus.events import TaskState
from support.vocabulary import published_proto, values_of

PROTO = published_proto()
ALWAYS_SENT = {("ConfirmationRequest", "words_option"), ("ConfirmationOption", "kind"), ("ExecuteDetails", "trial")}
"""Our own fields without which a client could not answer a question, or would agree to something else."""


def own_fields(message: str, value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the message and name of each field in a value that the document does not have."""
    fields = {field.name: field for field in PROTO.messages[message]}
    for name, item in value.items():
        field = fields[name]
        if field.number > 100:
            yield message, name
        elif field.kind in PROTO.messages:
            for one in cast("list[dict[str, Any]]", item if isinstance(item, list) else [item]):
                yield from own_fields(field.kind, one)


@given(values_of(ToolCall))
def test_a_client_of_the_document_receives_its_names_alone(call: ToolCall) -> None:
    assert set(own_fields("ToolCall", to_json(call_without_notes(call)))) <= ALWAYS_SENT


@given(values_of(ToolCall))
def test_the_open_calls_of_a_task_have_the_names_of_the_document_alone(call: ToolCall) -> None:
    snapshot = TaskSnapshot("task", "context", TaskState.INPUT_REQUIRED, 0, "/", 0.0, 0.0, pending=(call,))
    assert snapshot_without_notes(snapshot).pending == (call_without_notes(call),)
