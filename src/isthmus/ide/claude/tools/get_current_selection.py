"""getCurrentSelection: returns the current selection in the active editor, with an empty text if there is none."""

from isthmus.ide.claude.notifications import selection_json
from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.wire import Arguments, failure_result, json_result, schema
from isthmus.ide.companion import Companion
from isthmus.ide.editor import Capability, require
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import GET_CURRENT_SELECTION

TOOL = ToolDefinition(GET_CURRENT_SELECTION, "Get the current text selection in the active editor", schema())


async def run(companion: Companion, client: ClaudeSession, arguments: Arguments) -> CallToolResult:
    """Return the selection as the editor reports it now."""
    require(companion.editor, Capability.SELECTION)
    active = next((file for file in await companion.open_files() if file.is_active), None)
    if active is None:
        return failure_result("No active editor found")
    return json_result({"success": True, **selection_json(active)})
