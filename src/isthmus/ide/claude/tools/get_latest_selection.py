"""getLatestSelection: returns the last selected text, even if its file is no longer active."""

from isthmus.ide.claude.notifications import selection_json
from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.wire import Arguments, failure_result, json_result, schema
from isthmus.ide.companion import Companion
from isthmus.ide.editor import Capability, require
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import GET_LATEST_SELECTION

TOOL = ToolDefinition(
    GET_LATEST_SELECTION, "Get the most recent text selection, even if it is not in the active editor", schema()
)


async def run(companion: Companion, client: ClaudeSession, arguments: Arguments) -> CallToolResult:
    """Return the companion's last selection, after reading the current one."""
    require(companion.editor, Capability.SELECTION)
    await companion.open_files()  # notes a new selection even before its event arrives
    latest = companion.latest_selection
    if latest is None:
        return failure_result("No selection available")
    return json_result({"success": True, **selection_json(latest)})
