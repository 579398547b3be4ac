"""A conversation as a Markdown document for other people: prompts, answers, tool calls and their results. Pure.

The environment and what the provider alone understands are left out. A text of the conversation cannot end the block of
code that it stands in.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from isthmus.agent.environment import is_environment
from isthmus.agent.session.prompt_prefix import is_update
from isthmus.media import Media
from isthmus.models.port.base import Message, ModelThought, ModelToolResult, Opaque, Part, Text, ToolRequest
from isthmus.text.visible import without_escapes

_TICKS = re.compile("`+")


def transcript(messages: Sequence[Message]) -> str:
    """Return the document, which ends with a newline."""
    blocks = ["# Conversation"]
    for message in messages:
        parts = [block for part in message.parts for block in _blocks(part)]
        if parts:
            is_results = all(isinstance(part, ModelToolResult | Media) for part in message.parts)
            heading = "Results" if is_results else "User" if message.role == "user" else "Agent"
            blocks += [f"## {heading}", *parts]
    return without_escapes("\n\n".join(blocks)) + "\n"


def prompt_of(message: Message) -> str:
    """Return the text that begins a message of the user's side; empty if it has none."""
    return next((part.text for part in message.parts if isinstance(part, Text) and not _is_ours(part)), "")


def _is_ours(part: Text) -> bool:
    """Return whether a text tells the model of its surroundings, or of what has changed."""
    return is_environment(part) or is_update(part)


def _blocks(part: Part) -> Iterator[str]:
    match part:
        case Text(text):
            if text.strip() and not _is_ours(part):
                yield text.strip()
        case ToolRequest(_, name, arguments):
            yield f"Call of `{name}`:"
            yield _fenced(json.dumps(arguments, ensure_ascii=False, indent=2), "json")
        case ModelToolResult(_, name, content, is_error, media):
            yield f"{'Error' if is_error else 'Result'} of `{name}`:"
            yield _fenced(content)
            yield from map(_medium, media)
        case Media():
            yield _medium(part)
        case ModelThought() | Opaque():
            pass
        case _:
            assert_never(part)


def _fenced(text: str, language: str = "") -> str:
    """Return a block of code whose fence is longer than every row of backticks in the text."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _medium(media: Media) -> str:
    return f"*[{media.media_type}]*"
