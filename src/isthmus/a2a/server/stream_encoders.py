"""Encoders of streams around a wire's encoder, for what one client has, wants or knows."""

from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from isthmus.a2a.protocol.notes import call_without_notes
from isthmus.a2a.wire import JsonDict, StreamEncoder, Wire
from isthmus.client import Delivery, HistoryMessage, TaskSnapshot
from isthmus.development_tool import ToolCall
from isthmus.events import Command, Prompt, TaskState, ToolCallUpdate


class UnknownEventsEncoder(StreamEncoder):
    """An encoder that reads every event, but omits the items of events up to number ``known``."""

    def __init__(self, encoder: StreamEncoder, known: int) -> None:
        self._encoder = encoder
        self._known = known

    @override
    def encode(
        self,
        delivery: Delivery,
        *,
        final: bool = False,
        pending: Sequence[ToolCall] = (),
        answer: HistoryMessage | None = None,
    ) -> Sequence[JsonDict]:
        items = self._encoder.encode(delivery, final=final, pending=pending, answer=answer)
        return () if delivery.seq is not None and delivery.seq <= self._known else items


class PromptsEncoder(StreamEncoder):
    """Encodes a user's later messages, too, each as the task when it came: its history has the message alone."""

    def __init__(self, encoder: StreamEncoder, wire: Wire, snapshot: TaskSnapshot, uri: str | None) -> None:
        self._encoder = encoder
        self._wire = wire
        self._snapshot = snapshot
        self._uri = uri

    @override
    def encode(
        self,
        delivery: Delivery,
        *,
        final: bool = False,
        pending: Sequence[ToolCall] = (),
        answer: HistoryMessage | None = None,
    ) -> Sequence[JsonDict]:
        items = self._encoder.encode(delivery, final=final, pending=pending, answer=answer)
        if isinstance(delivery.event, Prompt | Command):
            task = self._wire.task(at_message(self._snapshot, delivery, delivery.event), self._uri)
            return (self._wire.task_item(task),)
        return items


class EncoderWithoutNotes(StreamEncoder):
    """An encoder of calls with the members of the extension's document alone."""

    def __init__(self, encoder: StreamEncoder) -> None:
        self._encoder = encoder

    @override
    def encode(
        self,
        delivery: Delivery,
        *,
        final: bool = False,
        pending: Sequence[ToolCall] = (),
        answer: HistoryMessage | None = None,
    ) -> Sequence[JsonDict]:
        if isinstance(delivery.event, ToolCallUpdate):
            event = replace(delivery.event, tool_call=call_without_notes(delivery.event.tool_call))
            delivery = replace(delivery, event=event)
        pending = tuple(call_without_notes(call) for call in pending)
        return self._encoder.encode(delivery, final=final, pending=pending, answer=answer)


def at_message(snapshot: TaskSnapshot, delivery: Delivery, message: Prompt | Command) -> TaskSnapshot:
    """Return the task as it was when a user's message came."""
    return replace(
        snapshot,
        state=TaskState.SUBMITTED,
        seq=delivery.seq or 0,
        updated_at=delivery.at,
        history=(_message_of(message),),
        pending=(),
        artifacts=(),
        error=None,
        reason=None,
    )


def _message_of(event: Prompt | Command) -> HistoryMessage:
    match event:
        case Prompt(message_id, text):
            return HistoryMessage(message_id, "user", text)
        case Command(message_id, path, args):
            return HistoryMessage(message_id, "user", f"/{' '.join(path)} {args}".strip())
