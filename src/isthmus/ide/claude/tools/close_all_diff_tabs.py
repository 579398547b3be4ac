"""closeAllDiffTabs: closes the diff views of this client only. Real CLIs call it before every turn."""

from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.wire import Arguments, schema
from isthmus.ide.companion import Companion
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import CLOSE_ALL_DIFF_TABS

TOOL = ToolDefinition(CLOSE_ALL_DIFF_TABS, "Close all diff tabs that this client opened in the editor", schema())


async def run(companion: Companion, client: ClaudeSession, arguments: Arguments) -> CallToolResult:
    """Close the views, and return their number; each pending openDiff returns a rejection."""
    return CallToolResult.text(f"CLOSED_{await companion.queue.close_all(client.id)}_DIFF_TABS")
