"""Parts of a conversation in tokens: their sum is what the provider counted, whatever the estimates are."""

from pathlib import Path

import pytest

from isthmus.agent.session.context_parts import context_parts
from isthmus.agent.session.size import MEDIA_TOKENS, messages_tokens
from isthmus.media import Media
from isthmus.models.port.base import Message, ModelToolResult, Text, ToolRequest
from isthmus.session_status import ContextParts

WORDS = Message("user", (Text("w" * 400),))
CALL = Message(
    "assistant",
    (
        Text("w" * 40),
        ToolRequest("1", "read", {}),
    ),
)
RESULT = Message("user", (ModelToolResult("1", "read", "f" * 4_000),))


def test_contents_are_calls_and_results_and_the_rest_is_instructions() -> None:
    parts = context_parts(5_000, (WORDS, CALL, RESULT))
    assert parts.words == 110
    assert parts.contents == messages_tokens((CALL, RESULT)) - 10
    assert sum((parts.instructions, parts.contents, parts.words)) == 5_000


def test_an_image_of_the_user_is_contents() -> None:
    image = Message("user", (Text("w" * 400), Media("image/png", Path("tide.png"))))
    assert context_parts(10_000, (image,)).contents == MEDIA_TOKENS


@pytest.mark.parametrize("tokens", [0, 1, 7, 500, 1_111])
def test_estimates_greater_than_the_count_are_reduced_alike(tokens: int) -> None:
    parts = context_parts(tokens, (WORDS, CALL, RESULT))
    assert parts.instructions == 0
    assert parts.contents + parts.words == tokens
    assert parts.words <= parts.contents + 1


def test_an_empty_conversation_has_instructions_alone() -> None:
    assert context_parts(100, ()) == ContextParts(100, 0, 0)
