"""The result of a tool call, split for model and user (Gemini CLI: "Response Handling" and "Rich Content").

`McpResult` contains the text and binary parts of the result in order, without the SDK's types. `render` converts it
into the text for the model (cut if it is too long), the media for models that accept them, and the text for the user.

MCP's ``audience``: a part for the user alone is not sent to the model, which is only informed that it exists. Nothing
is hidden from the user, who also sees parts for the assistant alone. Structured content is used only if there is no
text, because servers repeat it in their text. Pure, apart from the files that store long text and media.
"""

import base64
import binascii
import json
import mimetypes
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from isthmus.media import Media
from isthmus.record import record
from isthmus.text.units import show_count
from isthmus.text.visible import visible_prose, without_control_characters
from isthmus.tools.port.kept_files import MAXIMUM_FILES, KeptFiles

MAXIMUM_CHARACTERS = 30_000
"""Maximum number of characters of a result for model and user, unless the server sets another (`anthropic/...`)."""
MOST_CHARACTERS = 500_000
"""Highest maximum number of characters that a server can set."""
HEAD_SHARE = 2 / 3
"""Share of the beginning in the remaining characters of a cut text; the end has the rest."""
MAXIMUM_FILE_BYTES = 32 * 1024 * 1024
"""Maximum size in bytes of one file; larger data is not stored."""
MAXIMUM_KINDS = 20
MAXIMUM_SEARCHED = 200_000
"""Maximum number of characters of a text that is searched for the values of structured content."""
MAXIMUM_VALUES = 1_000
"""Maximum number of values of structured content that are looked for in the text."""
"""Maximum number of items of a result that its summary lists; further ones are only counted."""
MAXIMUM_SIZE_KEY = "anthropic/maxResultSizeChars"
"""Key in the ``_meta`` of a tool or a result with the maximum number of characters of a result."""

NO_OUTPUT = "(no output)"
_ENDINGS = {"audio/wav": ".wav", "audio/ogg": ".ogg", "audio/flac": ".flac", "audio/mp3": ".mp3", "image/webp": ".webp"}
"""Suffixes that are missing in the lists of some systems."""

_MEDIA_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)
_DATA_URL = re.compile(r"data:[^,]{0,200},")
_SPACES = re.compile(r"\s+")


@record
class TextPart:
    """A text. ``uri`` is the URI of its embedded resource, if it is from one."""

    text: str
    uri: str | None = None
    is_for_user: bool = False
    """Whether the part is for the user alone; the same in the other kinds of parts."""


@record
class BinaryPart:
    """An image, audio, or an embedded resource that is not text."""

    kind: str
    media_type: str
    data: bytes
    uri: str | None = None
    is_for_user: bool = False


@record
class LinkPart:
    """A resource of the server that the result points to."""

    uri: str
    name: str
    description: str = ""
    media_type: str | None = None
    is_for_user: bool = False


ResultPart: TypeAlias = TextPart | BinaryPart | LinkPart


@record
class McpResult:
    """The result of a call. ``structured`` is any JSON; it is shown unless the text has all of its values."""

    parts: tuple[ResultPart, ...]
    structured: object = None
    is_error: bool = False


@record
class Rendered:
    """A result as text; if it is cut, a note gives the file with the full text. ``media`` is its non-text content."""

    for_model: str
    for_user: str
    media: tuple[Media, ...] = ()


def parts_of(content: Sequence[Mapping[str, Any]]) -> tuple[ResultPart, ...]:
    """Return the parts of a CallToolResult's ``content``, given as its JSON."""
    return tuple(_part(block) for block in content)


def said_maximum(meta: object) -> int | None:
    """Return the maximum number of characters of a result in the ``_meta`` of a tool or result; None if not set."""
    value = cast("Mapping[str, object]", meta).get(MAXIMUM_SIZE_KEY) if isinstance(meta, Mapping) else None
    return min(value, MOST_CHARACTERS) if type(value) is int and value > 0 else None


def _part(block: Mapping[str, Any]) -> ResultPart:
    annotations: object = block.get("annotations")
    audience = cast("Mapping[str, object]", annotations).get("audience") if isinstance(annotations, Mapping) else None
    is_for_user = audience == ["user"]
    match block.get("type"):
        case "text":
            return TextPart(str(block.get("text", "")), None, is_for_user)
        case "image" | "audio" as kind:
            return _binary(str(kind), block.get("mimeType"), block.get("data"), None, is_for_user)
        case "resource":
            resource = cast("Mapping[str, Any]", block.get("resource") or {})
            uri = str(resource.get("uri", ""))
            if isinstance(resource.get("text"), str):
                return TextPart(resource["text"], uri, is_for_user)
            return _binary("resource", resource.get("mimeType"), resource.get("blob"), uri, is_for_user)
        case "resource_link":
            return LinkPart(
                str(block.get("uri", "")),
                str(block.get("title") or block.get("name") or ""),
                str(block.get("description") or ""),
                block.get("mimeType"),
                is_for_user,
            )
        case kind:
            return TextPart(f"[content of the type {kind!r}]", None, is_for_user)


def _binary(kind: str, media_type: object, data: object, uri: str | None, is_for_user: bool) -> ResultPart:
    shown = "application/octet-stream"
    if isinstance(media_type, str) and _MEDIA_TYPE.fullmatch(plain := media_type.partition(";")[0].strip()):
        shown = plain
    try:
        return BinaryPart(kind, shown, _decode(str(data or "")), uri, is_for_user)
    except ValueError:
        return TextPart(f"[{kind} {shown}: its data is not base64]", uri, is_for_user)


def _decode(text: str) -> bytes:
    """Return the bytes of base64 text. Line ends, missing padding, the URL-safe alphabet and data: URLs are accepted.

    Raises:
        ValueError: it is not base64.
    """
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        text = _SPACES.sub("", text)
        if (prefix := _DATA_URL.match(text)) is not None:
            text = text[prefix.end() :]
        text = text.translate(str.maketrans("-_", "+/")).rstrip("=")
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def render(
    result: McpResult,
    folder: Path,
    call_id: str,
    *,
    maximum: int = MAXIMUM_CHARACTERS,
    is_marked: bool = False,
) -> Rendered:
    """Return the result as text and media. Text that is too long, and binary data, are stored in files in `folder`.

    `maximum` is the maximum number of characters for the model; `is_marked` encloses them in ``<untrusted_context>``,
    as Gemini CLI does. Blocking if there is anything to store.
    """
    pieces = _Pieces(KeptFiles(folder, call_id))
    said: list[str] = []
    for part in result.parts:
        count = len(pieces.for_model)
        pieces.take(part)
        if not isinstance(part, BinaryPart):  # the path of a kept file is ours
            said += pieces.for_model[count:]
    if result.structured is not None and not has_values("\n".join(said), result.structured):
        pieces.take(TextPart(json.dumps(result.structured, ensure_ascii=False, indent=2)))
    for_model, for_user = "\n".join(pieces.for_model), "\n".join(pieces.for_user)
    is_same = for_model == for_user and maximum == MAXIMUM_CHARACTERS
    for_model, model_note = _cut(for_model, maximum, pieces.keeper)
    for_user, user_note = (for_model, model_note) if is_same else _cut(for_user, MAXIMUM_CHARACTERS, pieces.keeper)
    withheld = f"[{show_count(pieces.withheld, 'part')} for the user alone, who sees it]" if pieces.withheld else ""
    body = marked(for_model) if for_model and is_marked else for_model
    return Rendered(
        "\n".join(item for item in (body, model_note, withheld) if item) or NO_OUTPUT,
        "\n".join(item for item in (" + ".join(pieces.summary()), _for_user(for_user), user_note) if item) or NO_OUTPUT,
        tuple(pieces.media),
    )


def has_values(text: str, structured: object) -> bool:
    """Return whether a text has all values of JSON: numbers as words, strings as they are.

    A text above the limit is not searched, and taken to have them.
    """
    if len(text) > MAXIMUM_SEARCHED:
        return True
    open_values: list[object] = [structured]
    for _ in range(MAXIMUM_VALUES):
        if not open_values:
            return bool(text.strip())
        value = open_values.pop()
        if isinstance(value, dict):
            open_values += cast("dict[str, object]", value).values()
        elif isinstance(value, list):
            open_values += cast("list[object]", value)
        elif isinstance(value, str):
            if value not in text and json.dumps(value, ensure_ascii=False)[1:-1] not in text:
                return False
        elif value is not None:
            word = re.escape(json.dumps(value))
            if re.search(rf"(?<![\w.]){word}(?![\w.]*\d)", text, re.IGNORECASE) is None:
                return False
    return True  # the text is long enough to be the whole


class _Pieces:
    """The texts of a result's parts, in order, for the model and for the user."""

    def __init__(self, keeper: KeptFiles) -> None:
        self.keeper = keeper
        self.for_model: list[str] = []
        self.for_user: list[str] = []
        self.media: list[Media] = []
        self.withheld = 0
        self._lines = 0
        self._kinds: list[str] = []

    def take(self, part: ResultPart) -> None:
        """Add a part."""
        text = clean(self._text(part))
        self.for_user.append(text)
        if part.is_for_user:
            self.withheld += 1
        else:
            self.for_model.append(text)

    def summary(self) -> list[str]:
        """Return the kinds of the result's parts; empty if all of them are text."""
        lines = [f"text ({show_count(self._lines, 'line')})"] * bool(self._lines)
        more = [f"{len(self._kinds) - MAXIMUM_KINDS:,} more"] * (len(self._kinds) > MAXIMUM_KINDS)
        return [*lines, *self._kinds[:MAXIMUM_KINDS], *more] if self._kinds else []

    def _text(self, part: ResultPart) -> str:
        match part:
            case TextPart(text, uri):
                self._lines += text.count("\n") + bool(text)
                return f"[resource {uri}]\n{text}" if uri else text
            case BinaryPart():
                self._kinds.append(f"{part.media_type} ({_size(len(part.data))})")
                return f"[{_describe(part)}; {self._store(part)}]"
            case LinkPart(uri, name, description, media_type):
                self._kinds.append("link")
                about = ", ".join(item for item in (name, description, media_type) if item)
                return f"[link to the resource {uri}{f' ({about})' if about else ''}]"

    def _store(self, part: BinaryPart) -> str:
        """Store the data in a file, and return a note with its path, or with the reason why it is not stored."""
        if len(part.data) > MAXIMUM_FILE_BYTES:
            return "too large to keep"
        ending = _ENDINGS.get(part.media_type) or mimetypes.guess_extension(part.media_type) or ".bin"
        try:
            path = self.keeper.keep(part.data, ending)
        except OSError as error:
            return f"not kept: {error.strerror or error}"
        if path is None:
            return f"not kept: only the first {MAXIMUM_FILES} are"
        if not part.is_for_user:
            self.media.append(Media(part.media_type, path))
        return f"kept in {path}"


def _cut(text: str, maximum: int, keeper: KeptFiles) -> tuple[str, str]:
    """Return a text, and a note. If the text is too long, it is cut in the middle, and the note names its full file."""
    if len(text) <= maximum:
        return text, ""
    head = int(maximum * HEAD_SHARE)
    tail = maximum - head
    left_out = f"[... {len(text) - maximum:,} characters are left out here ...]"
    shown = f"{text[:head]}\n{left_out}\n{text[len(text) - tail :]}"
    size = f"The result has {len(text):,} characters"
    data = text.encode("utf-8", "replace")
    if len(data) > MAXIMUM_FILE_BYTES:
        return shown, f"[{size}, too many to keep them whole]"
    try:
        path = keeper.keep(data, ".txt")
    except OSError as error:
        return shown, f"[{size}; it could not be kept whole: {error.strerror or error}]"
    return shown, f"[{size}; all of it is in {path}]" if path is not None else f"[{size}; it is not kept whole]"


def clean(text: str) -> str:
    """Return a server's text without terminal sequences, and with hidden characters replaced by printable ones.

    Hidden characters are invisible or reorder text, such as tag characters and bidirectional marks.
    """
    return visible_prose(without_control_characters(text))


def marked(text: str) -> str:
    """Return a text marked as untrusted for the model, as in Gemini CLI; the text itself cannot end the mark."""
    inside = text.replace("</untrusted_context>", "&lt;/untrusted_context&gt;")
    return f"<untrusted_context>\n{inside}\n</untrusted_context>"


def _for_user(text: str) -> str:
    """Return JSON in a code block, as Gemini CLI shows it; other text is unchanged."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return text
    try:
        json.loads(stripped)
    except (ValueError, RecursionError):
        return text
    return f"```json\n{stripped}\n```"


def _describe(part: BinaryPart) -> str:
    of = f" of the resource {part.uri}" if part.uri else ""
    return f"{part.kind} {part.media_type}, {_size(len(part.data))}{of}"


def _size(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    return f"{size / 1024:.0f} KB" if size < 1024**2 else f"{size / 1024**2:.1f} MB"
