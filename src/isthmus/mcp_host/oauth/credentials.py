"""Choice of a connection's credentials: a kept login, a client's own, the user's Google account, or none.

Deliberately not here: sending them (:mod:`isthmus.mcp_host.oauth.bearer`), and obtaining them.
"""

from pathlib import Path

from isthmus.mcp_host.config.server_config import DISCOVERED, HttpEndpoint, ServerConfig
from isthmus.mcp_host.oauth.bearer import BearerAuth, Report
from isthmus.mcp_host.oauth.google_account import google_auth
from isthmus.mcp_host.oauth.kept_login import KeptLogin, http_of
from isthmus.mcp_host.oauth.logins import KeptLogins
from isthmus.mcp_host.oauth.machine_login import MachineLogin


def stored_login(config: ServerConfig, home: Path, report: Report, seconds: float) -> BearerAuth | None:
    """Return a connection's authentication; None for a program, and when the user's own headers authenticate.

    ``seconds`` is the time in which an endpoint must answer.
    """
    endpoint = config.endpoint
    if not isinstance(endpoint, HttpEndpoint):
        return None
    if config.auth_provider != DISCOVERED:
        return google_auth(config, endpoint, report)
    if any(name.lower() == "authorization" for name in endpoint.headers):
        return None
    http = http_of(config, endpoint.url, seconds)
    if config.oauth.is_of_machine:
        return BearerAuth(MachineLogin(config, endpoint, http), report)
    return BearerAuth(KeptLogin(config, endpoint.url, KeptLogins(home), http), report)
