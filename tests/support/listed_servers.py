"""MCP servers in memory, for slash commands."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace

from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import DiscoveryState, ServerState, ServerStatus, ServerTool
from isthmus.tools.port.tool_set import ToolScope


@dataclass
class ListedServers:
    """A fake ToolServers; a reconnect finds another tool. The lists record its calls."""

    states: dict[str, ServerStatus] = field(default_factory=dict[str, ServerStatus])
    state: DiscoveryState = DiscoveryState.COMPLETED
    refreshed: list[str | None] = field(default_factory=list[str | None])
    restarted: list[str] = field(default_factory=list[str])
    logins: list[str] = field(default_factory=list[str])

    async def servers(self, scope: ToolScope) -> Sequence[ServerStatus]:
        return list(self.states.values())

    async def discovery(self, scope: ToolScope) -> DiscoveryState:
        return self.state

    async def refresh(self, scope: ToolScope, name: str | None = None) -> Sequence[ServerStatus]:
        self._require(name)
        self.refreshed.append(name)
        return self._connected_anew()

    async def restart(self, scope: ToolScope, name: str) -> Sequence[ServerStatus]:
        self._require(name)
        self.restarted.append(name)
        return self._connected_anew()

    async def set_enabled(self, scope: ToolScope, name: str, *, is_enabled: bool) -> Sequence[ServerStatus]:
        self._require(name)
        state = ServerState.CONNECTED if is_enabled else ServerState.DISABLED
        self.states[name] = replace(self.states[name], state=state)
        return list(self.states.values())

    async def login(self, scope: ToolScope, name: str) -> AsyncGenerator[str, None]:
        self.logins.append(name)
        yield f"Open https://login.example/{name}"
        yield "Logged in."

    async def paste(self, scope: ToolScope, name: str, text: str) -> AsyncGenerator[str, None]:
        self.logins.append(f"{name} {text}")
        yield "Logged in."

    async def logout(self, scope: ToolScope, name: str) -> str:
        self._require(name)
        return f"Logged out of {name}."

    def _require(self, name: str | None) -> None:
        if name is not None and name not in self.states:
            raise ToolFailure(f"there is no server {name!r}; there are {', '.join(self.states)}", "unknown_server")

    def _connected_anew(self) -> Sequence[ServerStatus]:
        for key, status in self.states.items():
            added = ServerTool("added", "New.", {"type": "object"})
            self.states[key] = replace(status, tools=(*status.tools, added))
        return list(self.states.values())


def notes_and_locked() -> ListedServers:
    """Return a connected server, and one that needs a login."""
    tool = ServerTool("search", "Finds things.", {"type": "object", "properties": {"text": {"type": "string"}}})
    notes = ServerStatus(
        "notes", ServerState.CONNECTED, "stdio", "Notes of the team", (tool,), ("summary",), summary=("Command: notes",)
    )
    locked = ServerStatus("locked", ServerState.NEEDS_LOGIN, "http", problem="401", summary=("URL: http://x",))
    return ListedServers({"notes": notes, "locked": locked})
