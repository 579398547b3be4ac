"""checkDocumentDirty: returns whether an open file has unsaved changes."""

from isthmus.ide.claude.documents import find_open, locate
from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.wire import Arguments, failure_result, json_result, schema, string
from isthmus.ide.companion import Companion
from isthmus.ide.editor import Capability, require
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import CHECK_DOCUMENT_DIRTY

TOOL = ToolDefinition(
    CHECK_DOCUMENT_DIRTY,
    "Check if a document has unsaved changes (is dirty)",
    schema({"filePath": string("Path to the file to check")}, ["filePath"]),
)


async def run(companion: Companion, client: ClaudeSession, arguments: Arguments) -> CallToolResult:
    """Ask the editor. Reported documents have files, so they are never untitled."""
    require(companion.editor, Capability.DIRTY)
    path = await locate(companion, arguments.required_path("filePath"))
    file = await find_open(companion, path)
    is_dirty = await companion.editor.is_dirty(file.path) if file is not None else None
    if is_dirty is None:
        return failure_result(f"Document not open: {path}")
    return json_result({"success": True, "filePath": path, "isDirty": is_dirty, "isUntitled": False})
