"""Twelve tools of the Claude IDE protocol, one per file (its schema, then ``run``), and their dispatch.

To add a tool, copy a file, list it in :data:`_MODULES`, and list its required capability in :data:`_NEEDS`. The user's
own tools are in :mod:`isthmus.ide.mcp.custom_tools`. A tool that the editor does not support is not listed, and a call
returns the error "not available in EDITOR: reason".
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from types import MappingProxyType, ModuleType
from typing import Final, TypeAlias, cast

from isthmus.errors import IsthmusError
from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.tools import (
    check_document_dirty,
    close_all_diff_tabs,
    close_tab,
    execute_code,
    get_current_selection,
    get_diagnostics,
    get_latest_selection,
    get_open_editors,
    get_workspace_folders,
    open_diff,
    open_file,
    save_document,
)
from isthmus.ide.claude.wire import Arguments, checked
from isthmus.ide.companion import Companion
from isthmus.ide.editor import Capability
from isthmus.ide.mcp.mcp_peer import CallTool, CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import (
    CHECK_DOCUMENT_DIRTY,
    EXECUTE_CODE,
    GET_CURRENT_SELECTION,
    GET_DIAGNOSTICS,
    GET_LATEST_SELECTION,
    OPEN_DIFF,
    OPEN_FILE,
    SAVE_DOCUMENT,
)

Run: TypeAlias = Callable[[Companion, ClaudeSession, Arguments], Awaitable[CallToolResult]]

_MODULES: Final[tuple[ModuleType, ...]] = (
    open_file,
    open_diff,
    get_current_selection,
    get_latest_selection,
    get_open_editors,
    get_workspace_folders,
    get_diagnostics,
    check_document_dirty,
    save_document,
    close_tab,
    close_all_diff_tabs,
    execute_code,
)

TOOLS: Final[tuple[ToolDefinition, ...]] = tuple(module.TOOL for module in _MODULES)
"""Tools in the document's order."""

_TABLE: Final[Mapping[str, tuple[ToolDefinition, Run]]] = MappingProxyType(
    {tool.name: (tool, cast(Run, module.run)) for tool, module in zip(TOOLS, _MODULES, strict=True)}
)


_NEEDS: Final[Mapping[str, Capability]] = MappingProxyType(
    {
        OPEN_FILE: Capability.OPEN,
        OPEN_DIFF: Capability.DIFF,
        GET_CURRENT_SELECTION: Capability.SELECTION,
        GET_LATEST_SELECTION: Capability.SELECTION,
        GET_DIAGNOSTICS: Capability.DIAGNOSTICS,
        CHECK_DOCUMENT_DIRTY: Capability.DIRTY,
        SAVE_DOCUMENT: Capability.SAVE,
        EXECUTE_CODE: Capability.EXECUTE,
    }
)
"""Capability that each tool requires of the editor; tools not listed here work in every editor."""


def offered_tools(companion: Companion) -> tuple[ToolDefinition, ...]:
    """Return the twelve tools, with unsupported ones marked as unlisted, followed by the user's own."""
    lacking = set(companion.editor.unavailable)
    if companion.options.linters:
        lacking.discard(Capability.DIAGNOSTICS)
    if not companion.options.show_diffs:
        lacking.add(Capability.DIFF)
    of_editor = (replace(tool, is_listed=False) if _NEEDS.get(tool.name) in lacking else tool for tool in TOOLS)
    return (*of_editor, *companion.tools.listed())


async def call_tool(companion: Companion, client: ClaudeSession, call: CallTool) -> CallToolResult:
    """Run one call; a failure is returned as an error result with the reason.

    The peer has checked that the tool exists. ``openDiff`` and ``executeCode`` wait for the user.
    """
    try:
        if call.name in companion.tools:
            return await companion.tools.call(call.name, call.arguments)
        tool, run = _TABLE[call.name]
        arguments = checked(tool, call.arguments)
        return await run(
            companion, client, replace(arguments, answered_by=call.answered_by) if call.answered_by else arguments
        )
    except IsthmusError as error:
        return CallToolResult.error(str(error))
