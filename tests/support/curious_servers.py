"""The MCP server that probes its sandbox: its configuration, the environment of its host, and calls of its tools."""

from pathlib import Path
from typing import Any

from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import scripted, status_when
from support.sandboxing import machine_paths, with_bubblewrap
from support.tool_calls import success_of, tool_context


def curious(*arguments: str, paths: tuple[str, ...] = (), **sandbox: Any) -> dict[str, Any]:
    """Return the configuration of the probing server in a sandbox."""
    opened = {"paths": [*machine_paths(), *paths], **sandbox}
    return scripted("probes-its-sandbox", *arguments, sandbox=opened)


def surrounding(home: Path, **more: str) -> dict[str, str]:
    """Return the environment of a user's host, with bubblewrap."""
    return {**with_bubblewrap(), "HOME": str(home), **more}


class Asked:
    """A caller of one server's tools."""

    def __init__(self, host: McpHost, workspace: Path, server: str = "curious") -> None:
        self._host = host
        self._workspace = workspace
        self._server = server

    async def __call__(self, tool: str, **arguments: Any) -> str:
        """Return what the model gets from a call that must succeed, without the marks around it."""
        scope = ToolScope(self._workspace)
        await status_when(self._host, scope, self._server, ServerState.CONNECTED)
        tools = (await self._host.tools(scope)).tools
        result = await success_of(tools[tool], tool_context(self._workspace), **arguments)
        return result.for_model.removeprefix("<untrusted_context>\n").removesuffix("\n</untrusted_context>")
