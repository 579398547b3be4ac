"""A user's message as content blocks, as far as the agent reads them. Pure."""

import base64
from collections.abc import Sequence

from isthmus.acp.v1.connection import PromptCapabilities
from isthmus.acp.v1.content import ContentBlock, EmbeddedResource, ImageBlock, ResourceContents, ResourceLink, TextBlock
from isthmus.encoding.json_text import encode
from isthmus.errors import IsthmusError
from isthmus.events import MessagePart

EDITOR_URI = "isthmus:///editor"
"""URI of the resource with what the user's editor shows."""


class UnreadableContentError(IsthmusError):
    """A part of a message that the agent does not read."""


def prompt_blocks(
    parts: Sequence[MessagePart], abilities: PromptCapabilities | None, before: str = ""
) -> tuple[ContentBlock, ...]:
    """Return the blocks of a message; ``before`` is text in front of it.

    Raises:
        UnreadableContentError: the agent does not read a part.
    """
    blocks = tuple(_block(part, abilities or PromptCapabilities()) for part in parts)
    return (TextBlock(before), *blocks) if before else blocks


def context_block(shown: str, abilities: PromptCapabilities | None) -> ContentBlock:
    """Return the block with what the user's editor shows: a resource if the agent reads these, otherwise text."""
    if abilities is not None and abilities.embedded_context:
        return EmbeddedResource(ResourceContents(EDITOR_URI, "text/plain", shown))
    return TextBlock(f"{shown}\n\n")


def _block(part: MessagePart, abilities: PromptCapabilities) -> ContentBlock:
    name, kind = part.filename or "file", part.media_type or ""
    if part.text is not None:
        return TextBlock(part.text)
    if part.data is not None:
        return TextBlock(encode(part.data).decode())
    if part.url is not None:
        return ResourceLink(part.url, name, part.media_type)
    raw = part.raw or ""
    if kind.startswith("image/") and abilities.image:
        return ImageBlock(raw, kind)
    if kind.startswith("text/") or kind in ("application/json", "application/xml"):
        text = base64.b64decode(raw).decode("utf-8", "replace")
        if abilities.embedded_context:
            return EmbeddedResource(ResourceContents(f"attachment:///{name}", kind, text))
        return TextBlock(f"{name}:\n{text}")
    raise UnreadableContentError(f"the agent does not read {kind or 'files of an unknown type'} ({name}); send text")
