"""Members of a ToolCall that the extension's document does not name, and that only clients which ask for notes receive.

A client whose author knows the document alone may refuse an object with other names, as parsers of protobuf's JSON do.
`words_option` of a question and `kind` of an option are not among these members: no other field says how to answer.
Sans-I/O.
"""

from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from isthmus.a2a.wire import JsonDict, StreamEncoder
from isthmus.client import Delivery, HistoryMessage, TaskSnapshot
from isthmus.development_tool import ConfirmationRequest, ToolCall
from isthmus.events import ToolCallUpdate


def call_without_notes(call: ToolCall) -> ToolCall:
    """Return a call with the members of the extension's document alone; the call itself if it has no other."""
    request, output = call.confirmation_request, call.output
    if request is not None:
        call = replace(call, confirmation_request=_request_without_notes(request))
    if output is not None and output.exit_code is not None:
        call = replace(call, output=replace(output, exit_code=None))
    return call if call.changed_files is None else replace(call, changed_files=None)


def _request_without_notes(request: ConfirmationRequest) -> ConfirmationRequest:
    options = tuple(replace(option, covers=None) for option in request.options)
    return replace(request, options=options, wants=None, risks=None)


def snapshot_without_notes(snapshot: TaskSnapshot) -> TaskSnapshot:
    """Return a task whose open calls have the members of the extension's document alone."""
    if not snapshot.pending:
        return snapshot
    return replace(snapshot, pending=tuple(call_without_notes(call) for call in snapshot.pending))


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
