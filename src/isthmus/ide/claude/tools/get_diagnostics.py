"""getDiagnostics: returns the findings of linters and language servers in one or all open files, within a second.

Real CLIs call it without ``uri`` before every turn and wait without a deadline. They also call it for the file that
they have just written, which need not be open.
"""

import asyncio

from isthmus.ide.claude.documents import find_open, locate
from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.wire import Arguments, diagnostics_json, json_result, schema, string
from isthmus.ide.companion import Companion
from isthmus.ide.editor import EditorError, OpenFile
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import GET_DIAGNOSTICS
from isthmus.ide.workspace.workspace_files import is_inside

TOOL = ToolDefinition(
    GET_DIAGNOSTICS,
    "Get language diagnostics (errors, warnings) from the editor",
    schema({"uri": string("File URI to get diagnostics for. If not provided, gets diagnostics for all open files.")}),
)


async def run(companion: Companion, client: ClaudeSession, arguments: Arguments) -> CallToolResult:
    """Return the current diagnostics; a file outside the workspace that is not open is an error."""
    named = arguments.path("uri")
    if named is None:
        return json_result(diagnostics_json(await companion.diagnostics()))
    path = await locate(companion, named)
    file = await _find_open(companion, path)
    target = path if file is None else file.path
    found = await companion.diagnostics(target)
    is_known = file is not None or bool(companion.options.linters)
    if not found and not is_known and not is_inside(path, await companion.workspace_folders()):
        return CallToolResult.error(f"File not open: {path}; the editor has diagnostics of open files only")
    uri = arguments.text("uri") or ""
    return json_result(diagnostics_json(found, {target: uri if "://" in uri else ""}))


async def _find_open(companion: Companion, path: str) -> OpenFile | None:
    seconds = companion.limits.diagnostics_seconds
    try:
        async with asyncio.timeout(seconds):
            return await find_open(companion, path)
    except TimeoutError as error:
        name = companion.editor.identity.display_name
        raise EditorError(f"{name} did not report its open files within {seconds} s") from error
