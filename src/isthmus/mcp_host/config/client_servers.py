"""The servers in a client's AgentSettings: configured servers by name, and the client's own by URL or command.

A client's URL must satisfy the rule for addresses; commands are only for agents of the user's own. Pure.
"""

import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from isthmus.development_tool import McpServerSettings
from isthmus.mcp_host.catalogue.tool_names import REVIEW_TOOLS
from isthmus.mcp_host.config.server_config import (
    Endpoint,
    HttpEndpoint,
    HttpKind,
    Origin,
    ServerConfig,
    StdioEndpoint,
)
from isthmus.mcp_host.config.server_rules import ServerRules
from isthmus.tools.port.failure import ToolFailure

if TYPE_CHECKING:
    from isthmus.network.checked_transport import AddressPolicy

ALL_SERVERS = "*"
"""Name that stands for all configured servers."""
MAXIMUM_CLIENT_SERVERS = 8
UNKNOWN_SERVER = "unknown_mcp_server"
REFUSED_SERVER = "refused_mcp_server"


def require_known(
    wanted: Sequence[McpServerSettings],
    configured: Sequence[str],
    address_policy: "AddressPolicy | None",
    allows_programs: bool = False,
) -> None:
    """Check the servers in AgentSettings against the configured servers and the rules for clients' servers.

    Raises:
        ToolFailure: a name is not configured, a URL is not allowed, or no client may bring programs.
    """
    if sum(server.is_own for server in wanted) > MAXIMUM_CLIENT_SERVERS:
        raise ToolFailure(
            f"a session may have at most {MAXIMUM_CLIENT_SERVERS} MCP servers of its client", REFUSED_SERVER
        )
    for server in wanted:
        if not server.is_own:
            if server.name != ALL_SERVERS:
                require_name(server.name, configured)
            continue
        if server.name in configured:
            raise ToolFailure(
                f"the MCP server {server.name!r} is configured here; give your own server another name",
                REFUSED_SERVER,
            )
        if server.url is not None:
            _require_url(server, address_policy)
        elif not allows_programs:
            raise ToolFailure(
                f"the MCP server {server.name!r} is a command, and commands of clients are not run here (a server runs"
                " those of its owner alone, who must be on its machine); give a url, or have it configured there",
                REFUSED_SERVER,
            )


def require_allowed(wanted: Sequence[McpServerSettings], rules: ServerRules) -> None:
    """Raise ToolFailure for a client's own server that the machine's administrator forbids."""
    for server in wanted:
        if server.is_own and rules.refusal(client_config(server, Path("/"))) is not None:
            # The reason names a file, whose path is not for clients.
            raise ToolFailure(
                f"the MCP server {server.name!r} is not allowed by the administrator of this machine", REFUSED_SERVER
            )


def require_name(name: str, configured: Sequence[str]) -> None:
    """Raise ToolFailure if no configured server has the name."""
    if name not in configured:
        known = ", ".join(configured) or "none"
        raise ToolFailure(f"no MCP server is named {name!r} here; configured are: {known}", UNKNOWN_SERVER)


def _require_url(server: McpServerSettings, address_policy: "AddressPolicy | None") -> None:
    """Raise ToolFailure for an invalid URL, or if its host is an address that the rule refuses.

    The addresses of host names are checked when the connection is made.
    """
    try:
        parts = urlsplit(server.url or "")
        host = parts.hostname
    except ValueError:
        host = parts = None
    if parts is None or host is None or parts.scheme not in ("http", "https") or parts.username is not None:
        raise ToolFailure(f"the url of the MCP server {server.name!r} is not an http(s) address", REFUSED_SERVER)
    if address_policy is None:
        return
    addresses = ["127.0.0.1"] if host == "localhost" or host.endswith(".localhost") else [host]
    for address in addresses:
        try:
            ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return
        if (kind := address_policy(host, address)) is not None:
            raise ToolFailure(
                f"the url of the MCP server {server.name!r} leads to {kind}; this server connects to public addresses "
                "only, unless its owner allows more with --allow-client-mcp",
                REFUSED_SERVER,
            )


def client_config(server: McpServerSettings, workspace: Path) -> ServerConfig:
    """Return the configuration of a client's own server; its program runs in the workspace."""
    endpoint: Endpoint
    if server.command is not None:
        own = {name: str(value) for name, value in (server.env or {}).items()}
        endpoint = StdioEndpoint(server.command, server.args, own, workspace)
    else:
        headers = {name: str(value) for name, value in (server.headers or {}).items()}
        endpoint = HttpEndpoint(server.url or "", HttpKind.PROBE, headers)
    return ServerConfig(server.name, Origin.CLIENT, endpoint, exclude_tools=REVIEW_TOOLS)
