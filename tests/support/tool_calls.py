"""Calls tools as the turn loop does: propose, then run with what was proposed."""

import os
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

from isthmus.tools.base import Approved, Tool, ToolContext, ToolFailed, ToolItem, ToolSucceeded
from isthmus.tools.workspace import Workspace


def tool_context(workspace: Path, environment: Mapping[str, str] | None = None) -> ToolContext:
    """A context whose long outputs go beside the workspace."""
    return ToolContext(
        Workspace(workspace), "call-1", workspace.parent / "outputs", dict(environment or {"PATH": os.environ["PATH"]})
    )


async def items_of(
    tool: Tool, context: ToolContext, approved: Approved | None = None, /, **arguments: Any
) -> list[ToolItem]:
    """Everything a call yields; without `approved` the tool's own proposal is approved."""
    if approved is None:
        approved = Approved(await tool.propose(arguments, context))
    running = cast("Any", tool.run(arguments, context, approved))
    async with aclosing(running) as items:
        return [item async for item in items]


async def success_of(
    tool: Tool, context: ToolContext, approved: Approved | None = None, /, **arguments: Any
) -> ToolSucceeded:
    """The result of a call that has to succeed."""
    last = (await items_of(tool, context, approved, **arguments))[-1]
    assert isinstance(last, ToolSucceeded), last
    return last


async def failure_of(
    tool: Tool, context: ToolContext, approved: Approved | None = None, /, **arguments: Any
) -> ToolFailed:
    """The result of a call that has to run and fail."""
    last = (await items_of(tool, context, approved, **arguments))[-1]
    assert isinstance(last, ToolFailed), last
    return last


def said(result: ToolItem) -> str:
    """What the model reads of a result, without the mark around what an MCP server wrote."""
    assert isinstance(result, ToolSucceeded), result
    text, begin, end = result.for_model, "<untrusted_context>\n", "\n</untrusted_context>"
    if not text.startswith(begin):
        return text
    inside, _, behind = text.removeprefix(begin).rpartition(end)
    return inside + behind
