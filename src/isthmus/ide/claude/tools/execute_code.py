"""executeCode: runs code in the kernel of the open notebook, after the user has allowed it.

The user sees the code and answers in the editor or in a terminal (``isthmus ide answer``). The result contains the
output of the code in order, texts and images; an exception is an error result with the traceback.
"""

import asyncio
from pathlib import PurePath
from typing import Protocol, assert_never, runtime_checkable

from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.wire import ArgumentError, Arguments, schema, string
from isthmus.ide.companion import Companion
from isthmus.ide.editor import Capability, CodeExecution, ExecutionImage, ExecutionText, require
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_content import ToolContent
from isthmus.ide.mcp.tool_names import EXECUTE_CODE

TOOL = ToolDefinition(
    EXECUTE_CODE,
    "Execute Python code in the Jupyter kernel for the current notebook file. All code executed persists across calls "
    "unless the kernel is restarted: avoid declaring variables or modifying the state of the kernel unless explicitly "
    "requested by the user. The user is asked before any code is run.",
    schema({"code": string("The code to be executed on the kernel.")}, ["code"]),
)

MAXIMUM_CODE_CHARACTERS = 100_000
"""Maximum length of the code: no user would read more before agreeing."""
EXECUTE_SECONDS = 600.0


@runtime_checkable
class HasKernel(Protocol):
    """An editor that can check for a kernel in advance, so that the user is not asked in vain."""

    async def require_kernel(self) -> None:
        """Return if there is a kernel.

        Raises:
            EditorError: there is no kernel; the text explains what to do.
        """
        ...


async def run(companion: Companion, client: ClaudeSession, arguments: Arguments) -> CallToolResult:
    """Ask the user, then run the code. Cancelling withdraws the question, or interrupts the kernel."""
    code = arguments.required_text("code")
    if len(code) > MAXIMUM_CODE_CHARACTERS:
        raise ArgumentError(
            f"executeCode: expected at most {MAXIMUM_CODE_CHARACTERS} characters of code, received {len(code)}"
        )
    editor = companion.editor
    require(editor, Capability.EXECUTE)
    if isinstance(editor, HasKernel):
        await editor.require_kernel()
    notebook = await _notebook(companion)
    where = PurePath(notebook).name if notebook is not None else editor.identity.display_name
    title = f"{client.title} wants to run code in {where}"
    if not await companion.asking.ask(client.title, title, code, client.id, notebook or where):
        return CallToolResult.error("executeCode: the user did not allow it; no code was run")
    try:
        async with asyncio.timeout(EXECUTE_SECONDS):
            return _result_of(await editor.execute_code(code, notebook))
    except TimeoutError:
        return CallToolResult.error(f"executeCode: the code was interrupted; it took more than {EXECUTE_SECONDS:.0f} s")


async def _notebook(companion: Companion) -> str | None:
    """Return the path of the last focused notebook, even if it is hidden from agents, because only the user sees it."""
    notebooks = [file for file in await companion.editor.open_files() if file.path.endswith(".ipynb")]
    latest = max(notebooks, key=lambda file: (file.is_active, file.focused_at), default=None)
    return latest.path if latest is not None else None


def _result_of(execution: CodeExecution) -> CallToolResult:
    content = ToolContent()
    for output in execution.outputs:
        match output:
            case ExecutionText(text):
                content.add_text(text)
            case ExecutionImage(data, mime_type):
                content.add_image(data, mime_type)
            case _:
                assert_never(output)
    return content.result(is_error=execution.is_error)
