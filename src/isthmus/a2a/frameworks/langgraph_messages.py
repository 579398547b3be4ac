"""Messages of LangChain and a user's: content blocks in, texts, thoughts and files out."""

# LangChain's own types are partly unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from isthmus.a2a.frameworks.shown import file_artifact, text_of
from isthmus.events import ArtifactUpdate, MessagePart, Prompt

KINDS = ("image", "audio", "video")
"""Kinds of content blocks with a name of their own; every other file is a ``file``."""


def human_message(message: Prompt) -> HumanMessage:
    """Return a user's message with its files as content blocks; its id is the message's."""
    blocks = [_block(part) for part in message.content]
    content: Any = blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks
    return HumanMessage(content=content, id=message.message_id)


def _block(part: MessagePart) -> dict[str, Any]:
    media_type = part.media_type or "application/octet-stream"
    kind = media_type.partition("/")[0]
    block: dict[str, Any] = {"type": kind if kind in KINDS else "file", "mime_type": media_type}
    if part.filename and block["type"] == "file":
        block["extras"] = {"filename": part.filename}
    if part.raw is not None:
        return {**block, "base64": part.raw}
    if part.url is not None:
        return {**block, "url": part.url}
    return {"type": "text", "text": part.text if part.text is not None else text_of(part.data)}


def open_calls(messages: Sequence[BaseMessage]) -> Sequence[Mapping[str, Any]]:
    """Return the tool calls of the last message of the model that have no result."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return [cast("Mapping[str, Any]", call) for call in message.tool_calls if call["id"] not in answered]
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return []


def thinking_of(message: AIMessage) -> str:
    """Return what a message or a piece of it has of the model's thinking."""
    found = [block.get("reasoning") for block in message.content_blocks if block["type"] == "reasoning"]
    return "".join(text for text in found if isinstance(text, str))


def files_of(content: object) -> Iterator[ArtifactUpdate]:
    """Yield the files among the content blocks of a message or of a tool's artifact."""
    match content:
        case ToolMessage():
            yield from files_of(content.content)
            yield from files_of(content.artifact)
        case AIMessage():
            yield from files_of(content.content_blocks)
        case ArtifactUpdate():
            yield content
        case list() | tuple():
            for item in cast("Sequence[object]", content):
                yield from files_of(item)
        case Mapping():
            if (file := _file(cast("Mapping[str, Any]", content))) is not None:
                yield file
        case _:
            pass


def _file(block: Mapping[str, Any]) -> ArtifactUpdate | None:
    """Return the file of a content block; None if it is not one, or has not its bytes."""
    media_type, encoded = block.get("mime_type"), block.get("base64")
    address = block.get("image_url")
    address = address.get("url") if isinstance(address, Mapping) else address
    if encoded is None and isinstance(address, str) and address.startswith("data:") and ";base64," in address:
        head, _, encoded = address.partition(";base64,")
        media_type = head.removeprefix("data:")
    if not isinstance(encoded, str) or not isinstance(media_type, str):
        return None
    try:
        data = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return None
    extras = block.get("extras")
    name = extras.get("filename") if isinstance(extras, Mapping) else block.get("filename")
    return file_artifact(data, media_type, name if isinstance(name, str) else None)


def text_of_content(content: object) -> str:
    """Return the text among content blocks, with a word in place of each file."""
    if isinstance(content, list):
        return "".join(_text_of_block(item) for item in content)
    return text_of(content)


def _text_of_block(block: object) -> str:
    if not isinstance(block, Mapping):
        return text_of(block)
    text = block.get("text")
    return text if isinstance(text, str) else f"[{block.get('mime_type', block.get('type', 'data'))}]"
