"""What a tool call gave, split for the model and for the person (spec 4, "Response Handling" and "Rich Content").

`McpResult` is the result as parts, text and binary ones in their order, free of the SDK's types, so that a model that
takes images can be given them as they are. Pure, but for the files that keep what is not text: see :func:`render`.
"""

import base64
import binascii
import json
import mimetypes
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from isthmus.tools.shell_output import ShellOutput

MAXIMUM_FILE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text for the model. ``uri`` is that of the embedded resource it came from."""

    text: str
    uri: str | None = None


@dataclass(frozen=True, slots=True)
class BinaryPart:
    """An image, audio, or an embedded resource that is not text."""

    kind: str
    media_type: str
    data: bytes
    uri: str | None = None


@dataclass(frozen=True, slots=True)
class LinkPart:
    """A resource of the server that the result points to."""

    uri: str
    name: str
    description: str = ""
    media_type: str | None = None


ResultPart: TypeAlias = TextPart | BinaryPart | LinkPart


@dataclass(frozen=True, slots=True)
class McpResult:
    """The result of a call. ``structured`` is told to the model only where no text is."""

    parts: tuple[ResultPart, ...]
    structured: Mapping[str, Any] | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """A result as text: whole or cut, with a note on where the rest is."""

    for_model: str
    for_person: str


def parts_of(content: Sequence[Mapping[str, Any]]) -> tuple[ResultPart, ...]:
    """The parts of a CallToolResult's ``content``, given as its JSON."""
    return tuple(_part(block) for block in content)


def _part(block: Mapping[str, Any]) -> ResultPart:
    match block.get("type"):
        case "text":
            return TextPart(str(block.get("text", "")))
        case "image" | "audio" as kind:
            return _binary(str(kind), block.get("mimeType"), block.get("data"), None)
        case "resource":
            resource = cast("Mapping[str, Any]", block.get("resource") or {})
            uri = str(resource.get("uri", ""))
            if isinstance(resource.get("text"), str):
                return TextPart(resource["text"], uri)
            return _binary("resource", resource.get("mimeType"), resource.get("blob"), uri)
        case "resource_link":
            return LinkPart(
                str(block.get("uri", "")),
                str(block.get("name", "")),
                str(block.get("description") or ""),
                block.get("mimeType"),
            )
        case kind:
            return TextPart(f"[content of the type {kind!r}]")


def _binary(kind: str, media_type: object, data: object, uri: str | None) -> ResultPart:
    shown = media_type if isinstance(media_type, str) and media_type else "application/octet-stream"
    try:
        return BinaryPart(kind, shown, base64.b64decode(str(data or ""), validate=False), uri)
    except (binascii.Error, ValueError):
        return TextPart(f"[{kind} {shown}: its data is not base64]")


def render(result: McpResult, folder: Path, call_id: str) -> Rendered:
    """The result as text. What is too long, and what is not text, is kept whole in a file of `folder`."""
    stem = re.sub(r"[^\w.-]", "_", call_id)[-100:]
    pieces: list[str] = []
    kinds: list[str] = []
    lines = 0
    for part in result.parts:
        match part:
            case TextPart(text, uri):
                pieces.append(f"[resource {uri}]\n{text}" if uri else text)
                lines += text.count("\n") + bool(text)
            case BinaryPart():
                pieces.append(f"[{_described(part)}; {_kept(part, folder, stem)}]")
                kinds.append(f"{part.media_type} ({_size(len(part.data))})")
            case LinkPart(uri, name, description, media_type):
                about = ", ".join(item for item in (name, description, media_type) if item)
                pieces.append(f"[link to the resource {uri}{f' ({about})' if about else ''}]")
                kinds.append("link")
    text = "\n".join(pieces)
    if not text.strip() and result.structured is not None:
        text = json.dumps(result.structured, ensure_ascii=False, indent=2)
        lines = text.count("\n") + 1
    shown, note = _cut(text, folder / f"{stem}.txt")
    for_model = "\n".join(item for item in (shown, note) if item) or "(no output)"
    summary = " + ".join([f"text ({lines} line{'' if lines == 1 else 's'})"] * bool(lines) + kinds) if kinds else ""
    for_person = "\n".join(item for item in (summary, _for_person(shown), note) if item) or "(no output)"
    return Rendered(for_model, for_person)


def _for_person(text: str) -> str:
    """JSON in a code block, as Gemini CLI shows it; other text as it is."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return text
    try:
        json.loads(stripped)
    except (ValueError, RecursionError):
        return text
    return f"```json\n{stripped}\n```"


def _cut(text: str, path: Path) -> tuple[str, str]:
    output = ShellOutput(path)
    output.feed(text.encode("utf-8", "replace"))
    output.close()
    return output.text(), output.note()


def _described(part: BinaryPart) -> str:
    of = f" of the resource {part.uri}" if part.uri else ""
    return f"{part.kind} {part.media_type}, {_size(len(part.data))}{of}"


def _size(size: int) -> str:
    return f"{size} bytes" if size < 1024 else f"{size / 1024:.0f} KB"


def _kept(part: BinaryPart, folder: Path, stem: str) -> str:
    """Where the data is, or why it is nowhere."""
    if len(part.data) > MAXIMUM_FILE_BYTES:
        return "too large to keep"
    ending = mimetypes.guess_extension(part.media_type.partition(";")[0]) or ".bin"
    path = folder / f"{stem}-{secrets.token_hex(4)}{ending}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(part.data)
    except OSError as error:
        return f"not kept: {error.strerror or error}"
    return f"kept in {path}"
