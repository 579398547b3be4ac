"""Helpers that call tools as the turn loop does: propose, then run with the proposal."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from isthmus.tools.port.base import Approved, CallContext, Tool, ToolContext, ToolFailed, ToolResult, ToolSucceeded
from isthmus.tools.port.user_question import AskUser, no_user_to_ask
from isthmus.tools.port.workspace import Workspace


def tool_context(workspace: Path, environment: Mapping[str, str] | None = None) -> ToolContext:
    """Return a context whose long outputs go beside the workspace."""
    return ToolContext(
        Workspace(workspace), "call-1", workspace.parent / "outputs", dict(environment or {"PATH": os.environ["PATH"]})
    )


def running(
    context: ToolContext,
    approved: Approved | None = None,
    progress: Callable[[str], object] = str,
    ask: AskUser = no_user_to_ask,
) -> CallContext:
    """Return the context of a call that runs where it was proposed."""

    def show(text: str) -> None:
        progress(text)

    return CallContext.of(context, approved or Approved(), show, ask)


async def result_of(
    tool: Tool, context: ToolContext, approved: Approved | None = None, /, **arguments: Any
) -> ToolResult:
    """Return the result of a call; without `approved` the tool's own proposal is approved."""
    return (await progress_and_result(tool, context, approved, **arguments))[1]


async def progress_and_result(
    tool: Tool, context: ToolContext, approved: Approved | None = None, /, **arguments: Any
) -> tuple[list[str], ToolResult]:
    """Return the progress of a call, and its result."""
    if approved is None:
        approved = Approved(await tool.propose(arguments, context))
    shown: list[str] = []
    return shown, await tool.run(arguments, running(context, approved, shown.append))


async def success_of(
    tool: Tool, context: ToolContext, approved: Approved | None = None, /, **arguments: Any
) -> ToolSucceeded:
    """Return the result of a call that must succeed."""
    result = await result_of(tool, context, approved, **arguments)
    assert isinstance(result, ToolSucceeded), result
    return result


async def failure_of(
    tool: Tool, context: ToolContext, approved: Approved | None = None, /, **arguments: Any
) -> ToolFailed:
    """Return the result of a call that must run and fail."""
    result = await result_of(tool, context, approved, **arguments)
    assert isinstance(result, ToolFailed), result
    return result


def said(result: ToolResult) -> str:
    """Return the text that the model reads, without the mark around the text of an MCP server."""
    assert isinstance(result, ToolSucceeded), result
    text, begin, end = result.for_model, "<untrusted_context>\n", "\n</untrusted_context>"
    if not text.startswith(begin):
        return text
    inside, _, behind = text.removeprefix(begin).rpartition(end)
    return inside + behind
