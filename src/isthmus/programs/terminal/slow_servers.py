"""Words about MCP servers that connect slowly, for the user of a terminal whose prompt does not wait for them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from isthmus.errors import IsthmusError
from isthmus.terminal.interactive.announcements import Notice
from isthmus.text.units import show_count
from isthmus.text.visible import visible_line, with_ellipsis
from isthmus.tools.port.servers import ServerState, ServerStatus
from isthmus.tools.port.tool_set import ToolScope

if TYPE_CHECKING:
    from isthmus.mcp_host.host import McpHost

SLOW_SECONDS = 2.0
"""Time after which it is said how the connection to a server ends; sooner it needs no words."""
LONGEST_PROBLEM = 200


@asynccontextmanager
async def slow_servers_told(
    hosts: "Sequence[McpHost]", scope: ToolScope, say: Callable[[Notice], None], seconds: float = SLOW_SECONDS
) -> AsyncGenerator[None]:
    """Say meanwhile of each server that is not connected after ``seconds`` when it is, or why it is not."""
    telling = [asyncio.ensure_future(_tell(host, scope, say, seconds)) for host in hosts]
    try:
        yield
    finally:
        for one in telling:
            one.cancel()
        await asyncio.gather(*telling, return_exceptions=True)


async def _tell(host: "McpHost", scope: ToolScope, say: Callable[[Notice], None], seconds: float) -> None:
    with suppress(IsthmusError):  # a prompt says it
        async for status in host.slow_servers(scope, seconds):
            say(Notice(outcome_of(status)))


def outcome_of(status: ServerStatus) -> str:
    """Return a line about a server to which the connection has ended or failed."""
    name = visible_line(status.name)
    match status.state:
        case ServerState.CONNECTED:
            return f"The MCP server {name} is connected now: {show_count(len(status.tools), 'tool')}."
        case ServerState.NEEDS_LOGIN:
            return f"The MCP server {name} needs a login: /mcp auth {name}"
        case ServerState.CONNECTING | ServerState.DISCONNECTED | ServerState.DISABLED:
            problem = (status.problem or status.state.value).partition("; its last output:")[0]
            why = with_ellipsis(visible_line(problem), LONGEST_PROBLEM)
            return f"The MCP server {name} is not connected: {why}; isthmus mcp doctor {name} says more"
