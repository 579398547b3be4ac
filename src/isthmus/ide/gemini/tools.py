"""Running the tools of spec 1 at the companion; the same for every transport."""

from isthmus.ide.agent_client import Client
from isthmus.ide.companion import Companion
from isthmus.ide.editor import EditorError
from isthmus.ide.gemini import wire
from isthmus.ide.mcp_peer import CallTool, ToolResult
from isthmus.ide.tool_names import OPEN_DIFF


async def call_tool(companion: Companion, client: Client, client_name: str, call: CallTool) -> ToolResult:
    """Run one call for a client whose ``clientInfo.name`` is ``client_name``; what fails is an error result."""
    try:
        if call.name == OPEN_DIFF:
            proposal = wire.open_diff_request(call.arguments)
            await companion.open_diff(client, proposal.file_path, proposal.new_content)
            return ToolResult()
        request = wire.close_diff_request(call.arguments)
        closed = await companion.close_diff(client, request.file_path)
        return wire.close_diff_result(request, client_name, closed)
    except (wire.ArgumentError, EditorError) as error:
        return ToolResult.error(str(error))
