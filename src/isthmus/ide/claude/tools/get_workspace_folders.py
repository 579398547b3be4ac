"""getWorkspaceFolders: returns the open workspace folders; the first one is the root."""

from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.wire import Arguments, json_result, schema
from isthmus.ide.companion import Companion
from isthmus.ide.file_uri import file_uri
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import GET_WORKSPACE_FOLDERS

TOOL = ToolDefinition(GET_WORKSPACE_FOLDERS, "Get all workspace folders currently open in the IDE", schema())


async def run(companion: Companion, client: ClaudeSession, arguments: Arguments) -> CallToolResult:
    """Return the folders from the companion's options; without any there, the editor's."""
    folders = await companion.workspace_folders()
    named = [
        {"name": path.rstrip("/").rpartition("/")[2] or path, "uri": file_uri(path), "path": path} for path in folders
    ]
    # An addition for our own agent, not in the document: whether the user trusts the workspace.
    trust = {} if companion.is_trusted is None else {"isTrusted": companion.is_trusted}
    return json_result({"success": True, "folders": named, "rootPath": folders[0], **trust})
