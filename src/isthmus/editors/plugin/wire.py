"""Encoding and decoding of the messages between companion and plugin (docs/reference/editor-port.md).

Positions stay in the encoding that was agreed on; :mod:`isthmus.editors.plugin.recoding` converts them.
"""

import base64
import binascii
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Final, cast

from isthmus.editors.plugin.lsp_diagnostics import MAXIMUM_FILES
from isthmus.editors.plugin.lsp_shapes import (
    LspPosition,
    LspRange,
    decode_path,
    decode_position,
    decode_range,
    decoded,
    list_of,
)
from isthmus.encoding.codec import JsonObject
from isthmus.errors import DecodeError
from isthmus.ide.editor import (
    Capability,
    CodeExecution,
    ExecutionImage,
    ExecutionOutput,
    ExecutionText,
    FileMentioned,
    OpenFile,
    Selection,
)
from isthmus.ide.file_uri import file_uri
from isthmus.ide.mcp.mcp_peer import ToolDefinition
from isthmus.ide.reviews.review import DiffReview
from isthmus.record import record
from isthmus.text.offsets import OffsetEncoding
from isthmus.text.text_file import with_newlines_of

PROTOCOL_VERSION: Final = 1
MAXIMUM_DESCRIPTION_CHARACTERS: Final = 8000
"""Maximum length of a tool's description; what follows is cut off."""
_NAME: Final = re.compile("[a-z0-9][a-z0-9_-]{0,39}")
_MARK: Final = "\ufeff"
_NO_REASON: Final = "its plugin cannot do it"


@record
class Attached:
    """The editor of a plugin that has initialized, and what was agreed on. ``pid`` None: the plugin did not name it."""

    name: str
    display_name: str
    pid: int | None
    folders: tuple[str, ...]
    is_trusted: bool | None
    unavailable: Mapping[Capability, str]
    encoding: OffsetEncoding
    pushes_diagnostics: bool
    knows_only_lf: bool
    tools: tuple[ToolDefinition, ...]


@record
class _EditorInfo:
    name: str
    display_name: str | None = None
    process_id: int | None = None


@record
class _Folder:
    uri: str


@record
class _Tool:
    name: str
    description: str = ""
    input_schema: JsonObject | None = None


@record
class _Initialize:
    editor_info: _EditorInfo
    capabilities: JsonObject
    protocol_version: int = PROTOCOL_VERSION
    workspace_folders: tuple[_Folder, ...] | None = None
    is_trusted: bool | None = None
    position_encodings: tuple[str, ...] | None = None
    newlines: str = "exact"
    tools: tuple[_Tool, ...] | None = None


@record
class _OpenFile:
    uri: str
    is_active: bool = False
    focused_at: float = 0.0
    selection: LspRange | None = None
    cursor: LspPosition | None = None
    selected_text: str | None = None
    is_dirty: bool = False
    language_id: str | None = None
    line_count: int | None = None


@record
class _Mention:
    uri: str
    range: LspRange | None = None


@record
class _Output:
    type: str
    text: str = ""
    data: str = ""
    mime_type: str = ""


@record
class _Execution:
    outputs: tuple[_Output, ...] = ()
    is_error: bool = False


@record
class _Called:
    text: str = ""


@record
class _DiffText:
    text: str | None = None


@record
class _Reloaded:
    checked: tuple[str, ...] = ()


@record
class _Document:
    uri: str


@record
class _DiffDecision:
    id: str
    text: str | None = None


def decode_initialize(params: JsonObject) -> Attached:
    """Return the params of ``initialize``.

    Raises:
        DecodeError: a member is missing or wrong, or the version is not ours.
    """
    said = decoded(_Initialize, params, "initialize")
    if said.protocol_version != PROTOCOL_VERSION:
        raise DecodeError("initialize.protocolVersion", f"{PROTOCOL_VERSION}, the only version", said.protocol_version)
    name = said.editor_info.name
    if not _NAME.fullmatch(name):
        raise DecodeError("initialize.editorInfo.name", "at most 40 lower-case letters, digits, - and _", name)
    if said.newlines not in ("exact", "lf"):
        raise DecodeError("initialize.newlines", '"exact" or "lf"', said.newlines)
    diagnostics = said.capabilities.get(Capability.DIAGNOSTICS)
    return Attached(
        name,
        (said.editor_info.display_name or name)[:100],
        said.editor_info.process_id,
        _folders(said.workspace_folders or (), "initialize.workspaceFolders"),
        said.is_trusted,
        {capability: reason for capability in Capability if (reason := _lacks(said.capabilities.get(capability)))},
        next(
            (OffsetEncoding(e) for e in said.position_encodings or () if e in set(OffsetEncoding)),
            OffsetEncoding.UTF_16,
        ),
        isinstance(diagnostics, Mapping) and cast(JsonObject, diagnostics).get("push") is True,
        said.newlines == "lf",
        tuple(_tool(tool) for tool in said.tools or ()),
    )


def _tool(tool: _Tool) -> ToolDefinition:
    schema = {"type": "object"} if tool.input_schema is None else tool.input_schema
    return ToolDefinition(tool.name, tool.description[:MAXIMUM_DESCRIPTION_CHARACTERS], schema)


def _lacks(value: object) -> str | None:
    """Return the reason why the editor lacks a capability declared as ``value``; None if it has it."""
    if value is True or isinstance(value, Mapping):
        return None
    return value[:300] if isinstance(value, str) and value else _NO_REASON


def encode_initialized(attached: Attached, version: str) -> JsonObject:
    """Return the result of ``initialize``."""
    return {
        "serverInfo": {"name": "isthmus", "version": version},
        "protocolVersion": PROTOCOL_VERSION,
        "positionEncoding": attached.encoding.value,
    }


def decode_folders(value: object) -> tuple[str, ...]:
    """Return the result of ``workspace/workspaceFolders``."""
    return _folders(list_of(_Folder, value, "workspace/workspaceFolders"), "workspace/workspaceFolders")


def decode_trust(params: JsonObject) -> bool | None:
    """Return the params of ``editor/didChangeTrust``."""
    trusted = params.get("isTrusted")
    return trusted if isinstance(trusted, bool) else None


def decode_files(value: object) -> tuple[OpenFile, ...]:
    """Return the result of ``editor/openFiles``; at most one is active."""
    found: dict[str, OpenFile] = {}
    is_active_known = False
    for index, item in enumerate(list_of(_OpenFile, value, "editor/openFiles")[:MAXIMUM_FILES]):
        file = _file(item, f"editor/openFiles[{index}]")
        found[file.path] = replace(file, is_active=file.is_active and not is_active_known)
        is_active_known |= file.is_active
    return tuple(found.values())


def _file(item: _OpenFile, where: str) -> OpenFile:
    selected = decode_range(item.selection) if item.selection else None
    cursor = decode_position(item.cursor) if item.cursor else selected.end if selected else None
    has_text = selected is not None and selected.start != selected.end and item.selected_text
    return OpenFile(
        decode_path(item.uri, where),
        _seconds(item.focused_at),
        item.is_active,
        cursor,
        Selection(selected, item.selected_text) if selected and has_text and item.selected_text else None,
        item.is_dirty,
        item.language_id or None,
        item.line_count,
    )


def _seconds(value: float) -> float:
    """Return a time as a finite number; JSON has whole numbers of any size."""
    try:
        return float(value) if math.isfinite(value) else 0.0
    except OverflowError:
        return 0.0


def decode_mention(params: JsonObject) -> FileMentioned:
    """Return the params of ``editor/didMention``. A range that ends at the start of a line does not touch that line."""
    said = decoded(_Mention, params, "editor/didMention")
    path = decode_path(said.uri, "editor/didMention")
    if said.range is None:
        return FileMentioned(path)
    at = decode_range(said.range)
    ends_before = at.end.character == 0 and at.end.line > at.start.line
    return FileMentioned(path, at.start.line, at.end.line - ends_before)


def decode_decision(params: JsonObject, method: str) -> tuple[str, str | None]:
    """Return id and text of ``editor/didAcceptDiff``, ``didRejectDiff`` or ``didEditDiff``; text None: as proposed."""
    said = decoded(_DiffDecision, params, method)
    return said.id, said.text


def decode_closed(value: object) -> tuple[str | None] | None:
    """Return the result of ``editor/closeDiff``: the text (None: as proposed) in a tuple, or None without a view."""
    return None if value is None else (decoded(_DiffText, value, "editor/closeDiff").text,)


def decode_execution(value: object) -> CodeExecution:
    """Return the result of ``editor/executeCode``."""
    said = decoded(_Execution, value, "editor/executeCode")
    return CodeExecution(tuple(_output(output, i) for i, output in enumerate(said.outputs)), said.is_error)


def decode_called(value: object) -> str:
    """Return the result of ``editor/callTool``."""
    return decoded(_Called, value, "editor/callTool").text


def _output(output: _Output, index: int) -> ExecutionOutput:
    where = f"editor/executeCode.outputs[{index}]"
    match output.type:
        case "text":
            return ExecutionText(output.text)
        case "image":
            try:
                return ExecutionImage(base64.b64decode(output.data, validate=True), output.mime_type or "image/png")
            except binascii.Error as error:
                raise DecodeError(f"{where}.data", "base64", output.data) from error
        case _:
            raise DecodeError(f"{where}.type", '"text" or "image"', output.type)


def encode_documents(paths: Iterable[str]) -> JsonObject:
    """Return ``{uris}``, which names files."""
    return {"uris": [file_uri(path) for path in paths]}


def decode_reloaded(value: object) -> tuple[str, ...]:
    """Return the result of ``editor/reload``: the paths of the files that are checked anew."""
    checked = () if value is None else decoded(_Reloaded, value, "editor/reload").checked
    return tuple(decode_path(uri, f"editor/reload.checked[{i}]") for i, uri in enumerate(checked[:MAXIMUM_FILES]))


def decode_diagnostics_changed(params: JsonObject) -> str:
    """Return the path in the params of ``editor/didChangeDiagnostics``."""
    method = "editor/didChangeDiagnostics"
    return decode_path(decoded(_Document, params, method).uri, method)


def decode_saved(params: JsonObject) -> str:
    """Return the path in the params of ``editor/didSave``."""
    method = "editor/didSave"
    return decode_path(decoded(_Document, params, method).uri, method)


@record
class WrittenRequest:
    """Params of ``companion/written``: a command of the review after the fact, and its arguments."""

    command: str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])


def decode_written(params: JsonObject) -> WrittenRequest:
    """Return the params of ``companion/written``."""
    return decoded(WrittenRequest, params, "companion/written")


def encode_document(path: str) -> JsonObject:
    """Return ``{uri}``, which names a file."""
    return {"uri": file_uri(path)}


def encode_ready(environment: Mapping[str, str], discovery_files: Iterable[str]) -> JsonObject:
    """Return the params of ``companion/ready``."""
    return {"environment": dict(environment), "discoveryFiles": list(discovery_files)}


def encode_agents(titles: Mapping[str, str]) -> JsonObject:
    """Return the params of ``companion/agentsChanged``."""
    return {"agents": [{"id": agent_id, "title": title} for agent_id, title in titles.items()]}


def encode_review(review: DiffReview, *, is_new: bool) -> JsonObject:
    """Return the params of ``editor/openDiff``."""
    return {
        "id": review.id,
        "uri": file_uri(review.file_path),
        "proposed": review.proposed,
        "title": review.title,
        "isNewFile": is_new,
    }


def encode_question(title: str, text: str) -> JsonObject:
    """Return the params of ``window/showMessageRequest`` for a question."""
    return {
        "type": 3,
        "message": f"{title}\n\n{text}" if text else title,
        "actions": [{"title": "Yes"}, {"title": "No"}],
    }


def decode_answer(value: object) -> bool:
    """Return whether the result of ``window/showMessageRequest`` is a clear yes."""
    return isinstance(value, Mapping) and cast(JsonObject, value).get("title") == "Yes"


def with_form_of(original: str, text: str) -> str:
    r"""Return a text that has only ``\n`` with the newlines and the byte order mark of ``original``."""
    seen = original.replace("\r\n", "\n")
    if text in (seen, seen.removeprefix(_MARK)):
        return original
    mark = _MARK if original.startswith(_MARK) else ""
    return mark + with_newlines_of(original.removeprefix(_MARK), text.removeprefix(_MARK))


def _folders(folders: Iterable[_Folder], where: str) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(decode_path(folder.uri, f"{where}[{i}]").rstrip("/") or "/" for i, folder in enumerate(folders))
    )
