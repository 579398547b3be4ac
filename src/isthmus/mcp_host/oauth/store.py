"""A stored login to an MCP server, and the port of its store.

Not here: the store in a file, see :mod:`isthmus.mcp_host.oauth.token_file`, and the store in a keyring, see
:mod:`isthmus.mcp_host.oauth.keyring_store`.
"""

from dataclasses import field
from typing import Protocol

from isthmus.mcp_host.oauth.messages import Endpoints, OAuthClient
from isthmus.record import record


@record
class Registration:
    """Our registration at one authorization server, with its redirect URI."""

    client: OAuthClient
    issuer: str | None = None
    redirect_uri: str | None = None


@record
class StoredToken:
    """The tokens of a login. ``expires_at`` is in seconds since 1970; None if unknown.

    ``lifetime`` is the time in seconds from when it was stored to when it expires; None if unknown.
    ``wanted_scope`` is a scope that the server has demanded since; the next login requests it too.
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
    lifetime: float | None = None


class TokenStore(Protocol):
    """Keeps logins, one for a server's name and URL. Every method may block."""

    @property
    def place(self) -> str:
        """The place of the tokens, for the user."""
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
