"""Approvals for all future sessions: a port, and their conversion to grants of a session.

Only the local user's answers are kept, and only for tools of configured MCP servers: bound to the server's name, to
the settings file that configures it, and to the tool's definition at the time. Deliberately not here: the file
(:mod:`isthmus.app.approvals_file`), and asking.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from isthmus.agent.approval.policy import ServerToolGrant
from isthmus.development_tool import McpDetails
from isthmus.errors import IsthmusError
from isthmus.tools.base import ToolSet

_log = logging.getLogger(__name__)


class ApprovalsError(IsthmusError):
    """An approval cannot be kept; the text says why."""


@dataclass(frozen=True, slots=True)
class KeptApproval:
    """A tool that runs without a question in every session.

    ``origin`` is that of its server (see ServerTools), ``version`` that of its description and parameters.
    """

    server: str
    origin: str
    tool: str
    version: str


class KeptApprovals(Protocol):
    """Store of the approvals."""

    async def approvals(self) -> frozenset[KeptApproval]:
        """All of them; none where they cannot be read."""
        ...

    async def keep(self, approval: KeptApproval) -> None:
        """Keep one more, for good.

        Raises:
            ApprovalsError: it cannot be kept.
        """
        ...


class SessionApprovals:
    """The kept approvals in one segment of the local user's session, over the tools that there are."""

    def __init__(self, store: KeptApprovals, kept: Iterable[KeptApproval], tools: ToolSet) -> None:
        self._store = store
        self._origins = {
            server.name: server.origin
            for server in tools.servers
            if server.origin and server.name not in tools.foreign_servers
        }
        self.grants = frozenset(
            ServerToolGrant(approval.server, approval.tool, approval.version)
            for approval in kept
            if self._origins.get(approval.server) == approval.origin
        )
        """The approved tools among these, of the servers that the approvals were given for."""

    def may_keep(self, server: str) -> bool:
        """Return whether tools of a server may be allowed for all sessions to come: not those of a client's own."""
        return server in self._origins

    async def keep(self, details: McpDetails, version: str) -> None:
        """Keep the user's answer. Where that fails it holds for this session all the same, and the log says why."""
        origin = self._origins.get(details.server_name)
        if origin is None:
            return
        try:
            await self._store.keep(KeptApproval(details.server_name, origin, details.tool_name, version))
        except ApprovalsError as error:
            _log.warning("%s of the MCP server %s is asked again: %s", details.tool_name, details.server_name, error)
