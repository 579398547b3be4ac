"""Calls tools as the turn loop does: propose, then run with what was proposed."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from isthmus.tools.base import Approved, CallContext, Tool, ToolContext, ToolFailed, ToolResult, ToolSucceeded
from isthmus.tools.user_question import AskUser, nobody_to_ask
from isthmus.tools.workspace import Workspace


def tool_context(workspace: Path, environment: Mapping[str, str] | None = None) -> ToolContext:
    """A context whose long outputs go beside the workspace."""
    return ToolContext(
        Workspace(workspace), "call-1", workspace.parent / "outputs", dict(environment or {"PATH": os.environ["PATH"]})
    )


def running(
    context: ToolContext,
    approved: Approved | None = None,
    progress: Callable[[str], object] = str,
    ask: AskUser = nobody_to_ask,
) -> CallContext:
    """The context of a call that runs where it was proposed."""

    def show(text: str) -> None:
        progress(text)

    return CallContext.of(context, approved or Approved(), show, ask)


async def result_of(
    tool: Tool, context: ToolContext, approved: Approved | None = None, /, **arguments: Any
) -> ToolResult:
    """The result of a call; without `approved` the tool's own proposal is approved."""
    return (await progress_and_result(tool, context, approved, **arguments))[1]


async def progress_and_result(
    tool: Tool, context: ToolContext, approved: Approved | None = None, /, **arguments: Any
) -> tuple[list[str], ToolResult]:
    """Everything that a call shows, and its result."""
    if approved is None:
        approved = Approved(await tool.propose(arguments, context))
    shown: list[str] = []
    return shown, await tool.run(arguments, running(context, approved, shown.append))


async def success_of(
    tool: Tool, context: ToolContext, approved: Approved | None = None, /, **arguments: Any
) -> ToolSucceeded:
    """The result of a call that has to succeed."""
    result = await result_of(tool, context, approved, **arguments)
    assert isinstance(result, ToolSucceeded), result
    return result


async def failure_of(
    tool: Tool, context: ToolContext, approved: Approved | None = None, /, **arguments: Any
) -> ToolFailed:
    """The result of a call that has to run and fail."""
    result = await result_of(tool, context, approved, **arguments)
    assert isinstance(result, ToolFailed), result
    return result


def said(result: ToolResult) -> str:
    """What the model reads of a result, without the mark around what an MCP server wrote."""
    assert isinstance(result, ToolSucceeded), result
    text, begin, end = result.for_model, "<untrusted_context>\n", "\n</untrusted_context>"
    if not text.startswith(begin):
        return text
    inside, _, behind = text.removeprefix(begin).rpartition(end)
    return inside + behind
