"""A conversation in the order that every provider requires, even after cancellations and restarts.

A cancelled turn leaves calls without results, and a restart may spread results over several messages. The rules here
hold for all providers: the results of one assistant message are together in the next user message, before its text, in
the order of the calls, and every call has a result. The caller's messages are not changed.
"""

from collections.abc import Iterable, Sequence

from isthmus.encoding.codec import JsonObject
from isthmus.models.port.base import (
    NOT_RUN,
    Message,
    ModelToolResult,
    Part,
    ProviderState,
    Sampling,
    Text,
    ToolRequest,
    requests_of,
)


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
    """Yield neighbouring user messages joined, and an empty user message between neighbouring assistant messages."""
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
    # A result without its call, which a compaction removed, is sent as text: providers refuse it otherwise.
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
    """Return the state that the provider wants back with a part; empty without state, or with another provider's."""
    return state.data if state is not None and state.provider == provider else {}


def sampling_fields(sampling: Sampling) -> dict[str, float]:
    """Return the fields of a body for the parameters that are given, with the names of Anthropic and OpenAI."""
    fields = {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": sampling.top_k}
    return {name: value for name, value in fields.items() if value is not None}
