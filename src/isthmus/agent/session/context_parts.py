"""Parts of a conversation in tokens: instructions with tools, calls of tools with their results, and words. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from isthmus.agent.session.size import message_tokens
from isthmus.media import Media
from isthmus.models.port.base import Message, ModelToolResult, ToolRequest
from isthmus.session_status import ContextParts


def context_parts(tokens: int, messages: Sequence[Message]) -> ContextParts:
    """Return the parts of ``tokens``, the size of the next request with these messages.

    The messages are estimated, and instructions with tools are the rest. If the estimate is greater than the size, both
    parts of the messages are reduced alike.
    """
    contents = sum(message_tokens(replace(message, parts=_contents(message))) for message in messages)
    estimate = sum(map(message_tokens, messages))
    if estimate > tokens:
        contents, estimate = contents * tokens // estimate, tokens
    return ContextParts(tokens - estimate, contents, estimate - contents)


def _contents(message: Message) -> tuple[ToolRequest | ModelToolResult | Media, ...]:
    return tuple(part for part in message.parts if isinstance(part, ToolRequest | ModelToolResult | Media))
