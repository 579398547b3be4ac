"""Splits a model's patch of several files into one call for each file, since a question is about one file. Pure.

The conversation then has the calls as if the model had made them so.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from isthmus.models.base import Message, Part, ToolRequest
from isthmus.tools.apply_patch import ApplyPatch
from isthmus.tools.patch_text import file_sections

_TRAINED = re.compile(r"(?:.*/)?(?:gpt-|o\d|codex)", re.IGNORECASE)
_ARGUMENTS = ("input", "patch")


def knows_patches(model_name: str) -> bool:
    """Return whether a model is trained to write patches: OpenAI's, also through another provider."""
    return _TRAINED.match(model_name) is not None


def with_split_patches(message: Message) -> Message:
    """Return the message with a call for each file of its patches; the first one keeps the id."""
    parts = tuple(part for whole in message.parts for part in _split(whole))
    return message if len(parts) == len(message.parts) else replace(message, parts=parts)


def _split(part: Part) -> Iterator[Part]:
    if not isinstance(part, ToolRequest) or part.name != ApplyPatch.name:
        yield part
        return
    name = next((name for name in _ARGUMENTS if isinstance(part.arguments.get(name), str)), None)
    sections = [] if name is None else file_sections(str(part.arguments[name]))
    if name is None or len(sections) < 2:
        yield part
        return
    for number, section in enumerate(sections):
        identity, state = (part.id, part.state) if number == 0 else (f"{part.id}_{number + 1}", None)
        yield replace(part, id=identity, arguments={**part.arguments, name: section}, state=state)
