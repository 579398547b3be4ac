"""Size of a conversation in tokens: measured by the provider if possible, otherwise estimated.

The estimate counts four bytes of UTF-8 as a token: slightly too many for English, about right for code, and not too
few for Chinese.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, assert_never

from isthmus.encoding.remembered_json import RememberedJson
from isthmus.media import Media
from isthmus.models.port.base import (
    ChatModel,
    Message,
    ModelThought,
    ModelToolResult,
    Opaque,
    Part,
    ProviderState,
    Text,
    ToolRequest,
)

BYTES_PER_TOKEN = 4
MEDIA_TOKENS = 1_600
"""Estimate for an image or other media: the highest count of any provider for an image."""
DEFAULT_WINDOW = 128_000
"""Context window in tokens of a model without a known one."""
_schema = RememberedJson(partial(json.dumps, ensure_ascii=False))
_log = logging.getLogger(__name__)
_said: set[str] = set()
"""Names of models whose window was said to be unknown in this process."""


def context_window(model: ChatModel) -> int:
    """Return a model's context window in tokens; a careful guess if nothing states it."""
    return model.capabilities.context_window or DEFAULT_WINDOW


def say_if_unknown(model: ChatModel) -> None:
    """Log a warning, once in this process for each model, that its context window is not known."""
    if model.capabilities.context_window is not None or model.name in _said:
        return
    _said.add(model.name)
    _log.warning(
        "The context window of %s is unknown; assuming %s tokens. Set isthmus.models in your settings: %s",
        model.name,
        f"{DEFAULT_WINDOW:,}",
        json.dumps({model.name: {"contextWindow": DEFAULT_WINDOW}}),
    )


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text, at least one unless it is empty."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size // BYTES_PER_TOKEN)


def tool_tokens(name: str, description: str, parameters: Mapping[str, Any]) -> int:
    """Return the estimated tokens of a tool in each request."""
    return estimate_tokens(name + description + _schema(parameters))


def message_tokens(message: Message) -> int:
    """Return the estimated tokens of a message, with the state that its provider wants back."""
    return sum(map(_part_tokens, message.parts))


def messages_tokens(messages: Iterable[Message]) -> int:
    """Return the estimated tokens of several messages."""
    return sum(map(message_tokens, messages))


def _part_tokens(part: Part) -> int:
    match part:
        case Text(text, state) | ModelThought(text, state):
            return estimate_tokens(text) + _state_tokens(state)
        case ToolRequest(_, name, arguments, state):
            return estimate_tokens(name + json.dumps(dict(arguments), ensure_ascii=False)) + _state_tokens(state)
        case ModelToolResult(_, name, content, _, media):
            return estimate_tokens(name + content) + MEDIA_TOKENS * len(media)
        case Media():
            return MEDIA_TOKENS
        case Opaque(_, raw):
            return estimate_tokens(json.dumps(dict(raw), ensure_ascii=False))
        case _:
            assert_never(part)


def _state_tokens(state: ProviderState | None) -> int:
    return 0 if state is None else estimate_tokens(json.dumps(dict(state.data)))
