"""MCP servers whose tools that only read run without asking."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReadOnlyTools:
    """MCP servers whose read-only tools run without a question; an entry of ``servers`` counts first."""

    everywhere: bool = False
    servers: Mapping[str, bool] = field(default_factory=dict[str, bool])

    def are_free(self, server: str) -> bool:
        """Return whether those of a server are not asked about."""
        return self.servers.get(server, self.everywhere)
