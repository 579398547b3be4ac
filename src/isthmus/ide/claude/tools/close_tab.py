"""close_tab: closes the tab with a name, which is a diff view of this client or otherwise an open file.

Real CLIs call it twice for every diff, even after the decision, so an unknown name is a success. A pending openDiff
first returns a rejection; text that the user typed into the view is kept.
"""

from pathlib import PurePath

from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.wire import Arguments, schema, string
from isthmus.ide.companion import Companion
from isthmus.ide.editor import EditorError, OpenFile
from isthmus.ide.file_uri import path_of_uri
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import CLOSE_TAB
from isthmus.ide.reviews.review import Closed

TOOL = ToolDefinition(
    CLOSE_TAB,
    "Close a tab by its name",
    schema({"tab_name": string("Name of the tab to close")}, ["tab_name"]),
)


async def run(companion: Companion, client: ClaudeSession, arguments: Arguments) -> CallToolResult:
    """Close the tab, without losing unsaved work of the user."""
    name = arguments.required_text("tab_name")
    reviews = [review for review in companion.reviews.all(client.id) if review.tab_name == name]
    for review in reviews:
        closed = await companion.queue.close(review.id, arguments.answered_by)
        if closed is not None and isinstance(closed.state, Closed):
            client.review_closed(closed)  # its openDiff still waits
    if not reviews and arguments.answered_by:
        companion.queue.decided_too_late(client.id, name, arguments.answered_by)
    elif not reviews and (file := _named(await companion.open_files(), name)) is not None:
        await companion.editor.close_file(file.path)
    return CallToolResult.text("TAB_CLOSED")


def _named(files: tuple[OpenFile, ...], name: str) -> OpenFile | None:
    """Return the open file whose path, URI or tab label is this name.

    Raises:
        EditorError: several tabs have this name.
    """
    path = path_of_uri(name) or name
    found = [file for file in files if file.path == path]
    found = found or [file for file in files if PurePath(file.path).name == name]
    if len(found) > 1:
        raise EditorError(
            f"close_tab: several tabs are called {name}; give the path: {', '.join(file.path for file in found)}"
        )
    return found[0] if found else None
