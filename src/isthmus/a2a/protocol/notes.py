"""Members of a ToolCall that the extension's document does not name, and that only clients which ask for notes receive.

A client whose author knows the document alone may refuse an object with other names, as parsers of protobuf's JSON do.
`words_option` of a question and `kind` of an option are not among these members: no other field says how to answer.
Sans-I/O.
"""

from dataclasses import replace

from isthmus.client import TaskSnapshot
from isthmus.development_tool import ConfirmationRequest, ToolCall


def call_without_notes(call: ToolCall) -> ToolCall:
    """Return a call with the members of the extension's document alone."""
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
