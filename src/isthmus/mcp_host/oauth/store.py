"""What is kept of a login to an MCP server, and the port of what keeps it.

Deliberately not here: the file (:mod:`isthmus.mcp_host.oauth.token_file`) and the keyring
(:mod:`isthmus.mcp_host.oauth.keyring_store`).
"""

from dataclasses import dataclass, field
from typing import Protocol

from isthmus.mcp_host.oauth.messages import Endpoints, OAuthClient


@dataclass(frozen=True, slots=True)
class Registration:
    """Who we are to one authorization server, with the redirect that was registered there."""

    client: OAuthClient
    issuer: str | None = None
    redirect_uri: str | None = None


@dataclass(frozen=True, slots=True)
class StoredToken:
    """What is kept of a login. ``expires_at`` is in seconds since 1970; None: it is not known to end.

    ``wanted_scope`` is what the server asked for since, and the next login asks for besides.
    """

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    scope: str | None = None
    server_url: str | None = None
    registration: Registration | None = None
    endpoints: Endpoints | None = None
    resource: str | None = None
    wanted_scope: str | None = None


class TokenStore(Protocol):
    """Keeps logins, one for a server's name and URL. Every method may block."""

    @property
    def place(self) -> str:
        """Where they are, for the user."""
        ...

    def find(self, server: str, server_url: str) -> StoredToken | None:
        """Return the login to a server; None when there is none, or it is for another URL."""
        ...

    def save(self, server: str, token: StoredToken) -> None:
        """Keep the login to a server, in place of the one before.

        Raises:
            OSError: it cannot be kept.
        """
        ...

    def delete(self, server: str) -> None:
        """Forget the login to a server.

        Raises:
            OSError: it cannot be forgotten.
        """
        ...
