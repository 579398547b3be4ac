"""Approvals for all future sessions: a port, and their conversion to grants of a session.

Only the local user's answers are kept, and only for tools of configured MCP servers. Each is bound to the server's
name, to the settings file that configures it, and to the tool's definition at the time. Not here: the file, see
:mod:`isthmus.parts.approvals_file`.
"""

import logging
from collections.abc import Iterable
from typing import Protocol

from isthmus.agent.approval.grants import ServerToolGrant
from isthmus.development_tool import McpDetails
from isthmus.errors import IsthmusError
from isthmus.record import record
from isthmus.tools.port.tool_set import ToolSet

_log = logging.getLogger(__name__)


class ApprovalsError(IsthmusError):
    """Failure to keep an approval; the text is the reason."""


@record
class KeptApproval:
    """A tool that runs without a question in every session.

    ``origin`` is the origin of its server (see ServerTools); ``version`` identifies its description and parameters.
    """

    server: str
    origin: str
    tool: str
    version: str


class KeptApprovals(Protocol):
    """Store of the approvals."""

    async def approvals(self) -> frozenset[KeptApproval]:
        """Return all approvals, or none if they cannot be read."""
        ...

    async def keep(self, approval: KeptApproval) -> None:
        """Keep an approval for all future sessions.

        Raises:
            ApprovalsError: it cannot be kept.
        """
        ...


class SessionApprovals:
    """The kept approvals in one segment of the local user's session, for the available tools."""

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
        """Grants for the available tools whose server has the origin that was approved."""

    def may_keep(self, server: str) -> bool:
        """Return whether a server's tools may be allowed for all future sessions. A client's own server may not."""
        return server in self._origins

    async def keep(self, details: McpDetails, version: str) -> None:
        """Keep the user's answer. On failure it still holds for this session, and the reason is logged."""
        origin = self._origins.get(details.server_name)
        if origin is None:
            return
        try:
            await self._store.keep(KeptApproval(details.server_name, origin, details.tool_name, version))
        except ApprovalsError as error:
            _log.warning(
                "the approval of %s of the MCP server %s was not kept: %s",
                details.tool_name,
                details.server_name,
                error,
            )
