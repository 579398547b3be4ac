"""saveDocument: writes the unsaved changes of an open file to disk."""

from isthmus.ide.claude.documents import find_open, locate
from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.wire import Arguments, failure_result, json_result, schema, string
from isthmus.ide.companion import Companion
from isthmus.ide.editor import EditorError, EditorGoneError, NotAvailableError
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import SAVE_DOCUMENT

TOOL = ToolDefinition(
    SAVE_DOCUMENT,
    "Save a document with unsaved changes",
    schema({"filePath": string("Path to the file to save")}, ["filePath"]),
)


async def run(companion: Companion, client: ClaudeSession, arguments: Arguments) -> CallToolResult:
    """Let the editor write the file; a failure is reported in the JSON result."""
    path = await locate(companion, arguments.required_path("filePath"))
    file = await find_open(companion, path)
    if file is None:
        return failure_result(f"Document not open: {path}")
    try:
        await companion.editor.save(file.path)
    except (NotAvailableError, EditorGoneError):
        raise
    except EditorError as error:
        return failure_result(f"Failed to save document: {error}")
    return json_result({"success": True, "filePath": path, "saved": True, "message": "Document saved successfully"})
