"""close_tab: closes a tab by its name: a diff view of this client, or else an open file.

Real CLIs call it twice for every diff, even after the decision: an unknown name is a success. A diff that still waits
is answered with a rejection first; what the user typed into it is kept.
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
    """Close the tab; unsaved work of the user is never lost."""
    name = arguments.required_text("tab_name")
    reviews = [review for review in companion.reviews.all(client.id) if review.tab_name == name]
    for review in reviews:
        closed = await companion.queue.close(review.id)
        if closed is not None and isinstance(closed.state, Closed):
            client.review_closed(closed)  # its openDiff still waits
    if not reviews and (file := _named(await companion.open_files(), name)) is not None:
        await companion.editor.close_file(file.path)
    return CallToolResult.text("TAB_CLOSED")


def _named(files: tuple[OpenFile, ...], name: str) -> OpenFile | None:
    """Return the open file whose tab has this name: its path, its URI or its label.

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
