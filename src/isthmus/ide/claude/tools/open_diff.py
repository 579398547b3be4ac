"""openDiff: lets the user review a proposed edit, and waits for the decision.

The result has the form that real CLIs accept: two items, ``FILE_SAVED`` and the final contents, or ``DIFF_REJECTED``
and the tab's name. An empty final text is valid. ``TAB_CLOSED`` is never sent, because real CLIs would treat it as an
acceptance. Only the CLI writes the file.
"""

import asyncio
from typing import assert_never

from isthmus.ide.claude.documents import locate
from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.wire import Arguments, schema, string
from isthmus.ide.companion import Companion
from isthmus.ide.editor import Capability, require
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import OPEN_DIFF
from isthmus.ide.reviews.review import Accepted, Closed, DiffReview, Open, Rejected

TOOL = ToolDefinition(
    OPEN_DIFF,
    "Open a diff of a file for the user to review, edit, save or reject; blocks until they have decided",
    schema(
        {
            "old_file_path": string("Path to the file as it is"),
            "new_file_path": string("Path to the file that is to be written"),
            "new_file_contents": string("Proposed contents of the whole new file"),
            "tab_name": string("Name of the tab of the diff view"),
        },
        ["old_file_path", "new_file_path", "new_file_contents", "tab_name"],
    ),
)


async def run(companion: Companion, client: ClaudeSession, arguments: Arguments) -> CallToolResult:
    """Show the edit and wait for the decision. Cancelling closes the view."""
    arguments.required_path("old_file_path")  # real CLIs send the same path twice, even for new files
    path = await locate(companion, arguments.required_path("new_file_path"))
    proposed, tab_name = arguments.required_text("new_file_contents"), arguments.required_text("tab_name")
    require(companion.editor, Capability.DIFF)
    review = await companion.open_diff(client, path, proposed, tab_name=tab_name)
    try:
        decided = await client.wait_for_decision(review)
    except asyncio.CancelledError:
        await companion.queue.close(review.id)
        raise
    return result(decided)


def result(review: DiffReview) -> CallToolResult:
    """Return the result of openDiff for an ended review; without the user's decision it is a rejection."""
    match review.state:
        case Accepted(content):
            return _items("FILE_SAVED", content)
        case Closed(_, problem) if problem:
            return CallToolResult.error(
                problem
            )  # the user did not reject it, so the question in the terminal must remain
        case Rejected(reason=reason) if reason:  # only our own client gets one
            return _items("DIFF_REJECTED", review.tab_name, reason)
        case Rejected() | Closed() | Open():
            return _items("DIFF_REJECTED", review.tab_name)
        case _:
            assert_never(review.state)


def _items(*texts: str) -> CallToolResult:
    return CallToolResult(tuple({"type": "text", "text": text} for text in texts))
