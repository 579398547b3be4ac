"""Transcript of a conversation for the author of its summary: lines of JSON, in which long texts are cut. Pure."""

import json
from collections.abc import Sequence
from typing import Any, assert_never

from isthmus.agent.session.size import estimate_tokens
from isthmus.media import Media
from isthmus.models.port.base import (
    Message,
    ModelThought,
    ModelToolResult,
    Opaque,
    Part,
    Text,
    ToolRequest,
)

LONGEST_TEXTS = (8_000, 2_000, 500)
"""Maximum length in characters of one text in the transcript: the first limit with which everything fits applies."""


def transcript(messages: Sequence[Message], limit: int) -> str:
    """Return the messages as lines of JSON, shortened to about ``limit`` tokens, with a note about omissions."""
    lines: list[str] = []
    for longest in LONGEST_TEXTS:
        lines = [_line(message, longest) for message in messages]
        if sum(map(estimate_tokens, lines)) <= limit:
            return "\n".join(lines)
    left, size = list[str](), 0
    for line in reversed(lines):
        size += estimate_tokens(line)
        if size > limit:
            left.append(json.dumps({"note": f"{len(lines) - len(left)} older messages are left out: too long"}))
            break
        left.append(line)
    return "\n".join(reversed(left))


def _line(message: Message, longest: int) -> str:
    parts = [content for part in message.parts if (content := _part_content(part, longest)) is not None]
    sender = "user" if message.role == "user" else "agent"
    return json.dumps({"from": sender, "parts": parts}, ensure_ascii=False)


def _part_content(part: Part, longest: int) -> dict[str, Any] | None:
    match part:
        case Text(text):
            return {"text": shorten(text, longest)}
        case ToolRequest(_, name, arguments):
            return {"calls": name, "arguments": shorten(json.dumps(dict(arguments), ensure_ascii=False), longest)}
        case ModelToolResult(_, name, content, is_error, media):
            summary = {"failed" if is_error else "result_of": name, "content": shorten(content, longest)}
            return {**summary, "with": [_describe_media(item) for item in media]} if media else summary
        case Media():
            return {"with": [_describe_media(part)]}
        case ModelThought() | Opaque():
            return None
        case _:
            assert_never(part)


def _describe_media(media: Media) -> str:
    """Return the type and file of a medium, which the summary's author does not see."""
    return f"{media.media_type} in {media.path}"


def shorten(text: str, longest: int) -> str:
    """Return the text without its middle if it is too long."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
