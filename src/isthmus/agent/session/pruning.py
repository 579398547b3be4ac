"""Pruning: old tool results are replaced by a short note, before a summary is paid for. Pure.

The newest results stay, as does everything else of the conversation: texts, requests and the state that providers want
back. Not here: when to prune, see :mod:`isthmus.agent.context.keeper`.
"""

from collections.abc import Sequence
from dataclasses import replace

from isthmus.agent.session.size import message_tokens
from isthmus.models.port.base import Message, ModelToolResult, Part
from isthmus.record import record

KEPT_SHARE = 0.35
"""Share of the room for the newest messages, whose results stay."""
WORTH_SHARE = 0.15
"""Minimum share of the room that pruning must free: what changes the conversation empties its cache."""
SHORTEST_PRUNED = 500
"""Minimum number of characters of a result that is removed."""

NOTE = "[Isthmus removed this old result"
"""Beginning of the note in place of a result."""


@record
class PruningPlan:
    """Plan to prune the results in the first ``count`` messages, which frees about ``freed_tokens``."""

    count: int
    freed_tokens: int


def planned_pruning(messages: Sequence[Message], room: float) -> PruningPlan | None:
    """Return the part of a conversation whose results are removed; None if that frees too little.

    ``room`` is the number of tokens that a conversation may have.
    """
    kept, count = 0, len(messages)
    while count and kept <= room * KEPT_SHARE:
        count -= 1
        kept += message_tokens(messages[count])
    old = messages[:count]
    freed = sum(message_tokens(message) - message_tokens(_pruned(message)) for message in old)
    return PruningPlan(count, freed) if freed >= room * WORTH_SHARE else None


def pruned(messages: Sequence[Message], count: int) -> list[Message]:
    """Return the messages with a note in place of each long result in the first ``count``."""
    return [_pruned(message) if at < count else message for at, message in enumerate(messages)]


def _pruned(message: Message) -> Message:
    parts = tuple(_pruned_part(part) for part in message.parts)
    return message if parts == message.parts else replace(message, parts=parts)


def _pruned_part(part: Part) -> Part:
    if not isinstance(part, ModelToolResult) or (len(part.content) < SHORTEST_PRUNED and not part.media):
        return part
    if part.content.startswith(NOTE):
        return part
    note = f"{NOTE} of {len(part.content)} characters; call the tool again if you need it.]"
    return replace(part, content=note, media=())
