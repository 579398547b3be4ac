"""Results of tools as content blocks of MCP, with limits; the result notes what was cut or left out."""

import base64
from dataclasses import dataclass, field
from typing import Any

from isthmus.encoding.codec import JsonObject
from isthmus.ide.mcp.mcp_peer import CallToolResult

MAXIMUM_CHARACTERS = 400_000
"""Maximum total length of the texts of one result; a model has no use for more."""
MAXIMUM_IMAGE_BYTES = 10 * 1024 * 1024
"""Maximum total size of the images of one result, before base64."""
MAXIMUM_BLOCKS = 200


@dataclass(slots=True)
class ToolContent:
    """Builder of the content of one result, in order."""

    _blocks: list[JsonObject] = field(default_factory=list[JsonObject])
    _characters: int = 0
    _image_bytes: int = 0
    _left_out: int = 0

    def add_text(self, text: str) -> None:
        """Add text, cut to the remaining length."""
        room = MAXIMUM_CHARACTERS - self._characters
        self._characters += len(text)
        if len(text) > room:
            text = f"{text[: max(room, 0)]}\n[cut: a result has at most {MAXIMUM_CHARACTERS} characters of text]"
        self._add({"type": "text", "text": text})

    def add_image(self, data: bytes, mime_type: str) -> None:
        """Add an image, or a note if it is too large."""
        if self._image_bytes + len(data) > MAXIMUM_IMAGE_BYTES:
            note = f"left out: an image of {len(data)} bytes; a result has at most {MAXIMUM_IMAGE_BYTES} bytes of them"
            self._add({"type": "text", "text": f"[{note}]"})
            return
        self._image_bytes += len(data)
        self._add({"type": "image", "data": base64.b64encode(data).decode("ascii"), "mimeType": mime_type})

    def result(self, *, is_error: bool = False) -> CallToolResult:
        """Return the result with all added blocks."""
        blocks: list[Any] = list(self._blocks)
        if self._left_out:
            note = f"left out: {self._left_out} more parts; a result has at most {MAXIMUM_BLOCKS}"
            blocks.append({"type": "text", "text": f"[{note}]"})
        return CallToolResult(tuple(blocks), is_error)

    def _add(self, block: JsonObject) -> None:
        if len(self._blocks) < MAXIMUM_BLOCKS:
            self._blocks.append(block)
        else:
            self._left_out += 1
