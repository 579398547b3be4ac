"""Tools whose effects can be counted: one of each kind, without files or processes."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from isthmus.development_tool import ConfirmationDetails, McpDetails, ToolOutput
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded


@dataclass
class EffectTool:
    """A tool that counts its effects by call id. ``server`` makes it a tool of an MCP server."""

    name: str
    kind: ToolKind = ToolKind.OTHER
    server: str | None = None
    effects: Counter[str] = field(default_factory=Counter[str])
    description: str = "Has an effect."
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})

    def describe(self, arguments: Arguments) -> str:
        return f"Use {self.name}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        return None if self.server is None else McpDetails(self.server, self.name)

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        context.progress("begun")
        await asyncio.sleep(0)
        self.effects[context.tool_call_id] += 1
        context.progress("done")
        await asyncio.sleep(0)
        return ToolSucceeded(ToolOutput(text="done"), "done")
