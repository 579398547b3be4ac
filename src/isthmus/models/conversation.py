"""A conversation in the order that every provider insists on, whatever happened to it.

A turn that was cancelled leaves calls without results; a restart may bring results in several messages. The rules
here hold for all wires: the results of one assistant message stand together in the next user message, before its
text, in the order of the calls; every call has one. This is deliberately not a repair of history: the caller's
messages stay as they are.
"""

from collections.abc import Iterable, Sequence

from isthmus.encoding.codec import JsonObject
from isthmus.models.base import NOT_RUN, Message, ModelToolResult, Part, ProviderState, Text, ToolRequest, requests_of


def in_order(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages with user and assistant taking turns and every call followed by its result."""
    ordered: list[Message] = []
    for role, parts in _joined(messages):
        if role == "assistant":
            ordered.append(Message("assistant", parts))
            continue
        calls = requests_of(ordered[-1]) if ordered and ordered[-1].role == "assistant" else ()
        if results := _results_first(calls, parts):
            ordered.append(Message("user", results))
    if ordered and (calls := requests_of(ordered[-1])) and ordered[-1].role == "assistant":
        ordered.append(Message("user", _results_first(calls, ())))
    return tuple(ordered)


def _joined(messages: Sequence[Message]) -> Iterable[tuple[str, tuple[Part, ...]]]:
    """Neighbours of one role as one, but an assistant's calls and its next words stay apart."""
    waiting: tuple[str, tuple[Part, ...]] | None = None
    for message in messages:
        if waiting is not None and waiting[0] == message.role == "user":
            waiting = (message.role, waiting[1] + message.parts)
            continue
        if waiting is not None:
            yield waiting
            if waiting[0] == message.role == "assistant":
                yield ("user", ())
        waiting = (message.role, message.parts)
    if waiting is not None:
        yield waiting


def _results_first(calls: Sequence[ToolRequest], parts: Sequence[Part]) -> tuple[Part, ...]:
    given = {part.id: part for part in parts if isinstance(part, ModelToolResult)}
    results = tuple(given.get(call.id, ModelToolResult(call.id, call.name, NOT_RUN, is_error=True)) for call in calls)
    known = {call.id for call in calls}
    # A result whose call is gone (cut off by a compaction) is sent as text: providers refuse it otherwise.
    rest: list[Part] = []
    for part in parts:
        if not isinstance(part, ModelToolResult):
            rest.append(part)
        elif part.id not in known:
            rest += [Text(f"Result of an earlier call of {part.name}:\n{part.content}"), *part.media]
    return (*results, *rest)


def used_ids(messages: Iterable[Message]) -> frozenset[str]:
    """Return the ids of every call in the conversation."""
    return frozenset(call.id for message in messages for call in requests_of(message))


def state_for(provider: str, state: ProviderState | None) -> JsonObject:
    """Return the state that the provider wants back with a part; empty when there is none or it is another's."""
    return state.data if state is not None and state.provider == provider else {}
