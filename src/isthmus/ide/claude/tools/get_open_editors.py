"""getOpenEditors: returns the open files as VS Code lists its tabs.

The Editor port has no groups, pins or previews: every file is a normal tab of the only group. ``isDirty`` is null
if the editor cannot report it.
"""

from pathlib import PurePath

from isthmus.encoding.codec import JsonObject
from isthmus.ide.claude.documents import document_summary
from isthmus.ide.claude.notifications import range_json
from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.wire import Arguments, json_result, language_id, schema
from isthmus.ide.companion import Companion
from isthmus.ide.editor import Capability, EditorError, EditorGoneError, OpenFile
from isthmus.ide.file_uri import file_uri
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import GET_OPEN_EDITORS

TOOL = ToolDefinition(GET_OPEN_EDITORS, "Get information about currently open editors", schema())


async def run(companion: Companion, client: ClaudeSession, arguments: Arguments) -> CallToolResult:
    """Return all files that agents may know of, the active one first."""
    return json_result({"tabs": [await _tab(companion, file) for file in await companion.open_files()]})


async def _tab(companion: Companion, file: OpenFile) -> JsonObject:
    tab: JsonObject = {
        "uri": file_uri(file.path),
        "isActive": file.is_active,
        "isPinned": False,
        "isPreview": False,
        "isDirty": None if Capability.DIRTY in companion.editor.unavailable else file.is_dirty,
        "label": PurePath(file.path).name,
        "groupIndex": 0,
        "viewColumn": 1,
        "isGroupActive": True,
        "fileName": file.path,
        **await _document(companion, file),
        "isUntitled": False,
    }
    if file.selection is not None:
        tab = {**tab, "selection": {**range_json(file.selection.range), "isReversed": False}}
    return tab


async def _document(companion: Companion, file: OpenFile) -> JsonObject:
    try:
        document = await document_summary(companion, file.path, file)
    except EditorGoneError:
        raise
    except EditorError:  # for instance, the file was just deleted; the other tabs are still listed
        return {"languageId": file.language_id or language_id(file.path), "lineCount": 0}
    return {"languageId": document.language_id, "lineCount": document.line_count}
