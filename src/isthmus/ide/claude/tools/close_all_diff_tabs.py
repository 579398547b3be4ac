"""closeAllDiffTabs: close the diff views of this client, and of no other. Real CLIs call it before every turn."""

from isthmus.ide.claude.session import Session
from isthmus.ide.claude.wire import Arguments, schema
from isthmus.ide.companion import Companion
from isthmus.ide.mcp.mcp_peer import Tool, ToolResult
from isthmus.ide.mcp.tool_names import CLOSE_ALL_DIFF_TABS

TOOL = Tool(CLOSE_ALL_DIFF_TABS, "Close all diff tabs that this client opened in the editor", schema())


async def run(companion: Companion, client: Session, arguments: Arguments) -> ToolResult:
    """How many there were; each openDiff that waits is answered with a rejection."""
    return ToolResult.text(f"CLOSED_{await companion.close_reviews(client.id)}_DIFF_TABS")
