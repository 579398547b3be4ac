"""The sandbox around a server that runs as a local program, if its configuration asks for one.

If no sandbox works on this machine, the server starts without it, unless its configuration requires it. The server's
status and the log report this.
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from isthmus.files.locations import data_directory
from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.connection_context import ConnectionContext
from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.record import record
from isthmus.sandbox.confinement import Launch, describe_policy
from isthmus.sandbox.finding import SandboxFinder
from isthmus.sandbox.mounts import PrivatePlaces
from isthmus.sandbox.policy import Demand, SandboxError, SandboxPolicy
from isthmus.sandbox.support import NoSandbox

_LOG = logging.getLogger("isthmus.mcp")


@record
class ServerSandbox:
    """The sandbox of a server: it opens the workspace, and the places that `policy` allows."""

    server: str
    policy: SandboxPolicy
    workspace: Path
    finder: SandboxFinder

    async def launch(self, wanted: Launch, surrounding: Mapping[str, str], log: ServerLog) -> Launch:
        """Return the launch of the server inside the sandbox; `log` keeps the outcome.

        `surrounding` is the agent's own environment.

        Raises:
            SandboxError: the configuration requires a sandbox, and it does not work.
            OSError: the program or folder does not exist.
        """
        found = await asyncio.to_thread(self.finder.find)
        if isinstance(found, NoSandbox):
            if self.policy.demand is Demand.REQUIRE:
                raise SandboxError(f"it was not started: it requires a sandbox, which does not work: {found.reason}")
            log.sandbox = f"NONE, though it is configured: {found.reason}"
            _LOG.warning("MCP server %s runs WITHOUT its sandbox: %s", self.server, found.reason)
            return wanted
        launch = await asyncio.to_thread(
            found.confined, wanted, self.policy, self.workspace, surrounding=surrounding, readable=()
        )
        log.sandbox = f"{found.bubblewrap}; {describe_policy(self.policy)}"
        return launch


def server_sandbox(config: ServerConfig, context: ConnectionContext) -> ServerSandbox | None:
    """Return the sandbox that a server's configuration asks for."""
    if config.sandbox is None:
        return None
    environment = context.environment
    finder = context.sandbox
    if finder is None:
        home = context.home or Path.home()
        finder = SandboxFinder(PrivatePlaces(home, (data_directory(environment),)), environment)
    return ServerSandbox(config.name, config.sandbox, context.workspace, finder)
