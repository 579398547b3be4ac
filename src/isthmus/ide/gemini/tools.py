"""Tools of the companion's server for Gemini CLI, and their dispatch, for any transport."""

from dataclasses import replace

from isthmus.ide.agent_client import Client
from isthmus.ide.companion import Companion
from isthmus.ide.editor import EditorError
from isthmus.ide.gemini import wire
from isthmus.ide.gemini.discovery import QWEN_CODE
from isthmus.ide.mcp.mcp_peer import CallTool, CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import CLOSE_DIFF, OPEN_DIFF
from isthmus.ide.reviews.review import DiffReview


def offered_tools(companion: Companion) -> tuple[ToolDefinition, ...]:
    """Return the diff tools, then the user's own.

    The diff tools are not listed if no diff can be shown: real clients then ask in their terminals from the start. A
    call of an unlisted one returns the reason.
    """
    diff_tools = (replace(tool, is_listed=companion.shows_diffs) for tool in wire.TOOLS)
    return (*diff_tools, *companion.tools.listed())


async def call_tool(companion: Companion, client: Client, client_name: str, call: CallTool) -> CallToolResult:
    """Run one call for a client whose ``clientInfo.name`` is ``client_name``; any failure is an error result."""
    if call.name in companion.tools:
        return await companion.tools.call(call.name, call.arguments)
    try:
        if call.name == OPEN_DIFF:
            proposal = wire.open_diff_request(call.arguments)
            await companion.open_diff(client, proposal.file_path, proposal.new_content)
            return CallToolResult()
        request = wire.close_diff_request(call.arguments)
        if not companion.shows_diffs:
            return CallToolResult.error(f"{CLOSE_DIFF}: this companion shows no diffs")
        closed = await _close(companion, client, request.file_path, call.answered_by)
        return wire.close_diff_result(request, client_name, closed)
    except (wire.ArgumentError, EditorError) as error:
        return CallToolResult.error(str(error))


async def _close(companion: Companion, client: Client, file_path: str, answered_by: str) -> DiffReview | None:
    review = companion.reviews.find(client.id, file_path)
    if review is not None and client.title == QWEN_CODE:
        # After a decision in its terminal it writes its proposal, ignoring closeDiff's result: keep the user's text.
        return await companion.queue.close(review.id, answered_by)
    return await companion.queue.close_oldest(client, file_path, answered_by)
