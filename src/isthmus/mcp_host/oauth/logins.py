"""The logins to MCP servers in progress in one host: begin, paste, cancel; and logging out.

Not here: the steps of one login, see :mod:`isthmus.mcp_host.oauth.login_flow`.
"""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.mcp_host.config.server_config import DISCOVERED, HttpEndpoint, Origin
from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.oauth.login_flow import Login, OpenBrowser, Paste, UserPrompts
from isthmus.mcp_host.oauth.login_store import LoginStore
from isthmus.mcp_host.oauth.messages import authenticated
from isthmus.mcp_host.oauth.redirect import CATEGORY
from isthmus.mcp_host.oauth.store import StoredToken
from isthmus.mcp_host.oauth.stored_login import http_of
from isthmus.tools.port.failure import ToolFailure

if TYPE_CHECKING:
    from isthmus.mcp_host.connection.connection import ServerConnection


class Logins:
    """The logins in progress, at most one for each server."""

    def __init__(self, home: Path, open_browser: OpenBrowser | None = None) -> None:
        self._kept = LoginStore(home)
        self._open_browser = open_browser
        self._going: dict[ServerConnection, Login] = {}

    async def begin(self, connection: "ServerConnection", paste: Paste | None = None) -> AsyncGenerator[str, None]:
        """Log in; yield messages with instructions for the user and the outcome.

        Raises:
            ToolFailure: the server has no login, or the login failed or took too long.
        """
        endpoint = _require_oauth(connection)
        if (before := self._going.pop(connection, None)) is not None:
            await before.aclose()
        going = self._going[connection] = Login(
            connection, endpoint, self._kept, UserPrompts(self._open_browser, paste)
        )
        async for line in going.follow():
            yield line

    async def paste(self, connection: "ServerConnection", text: str) -> AsyncGenerator[str, None]:
        """Continue the waiting login with the final address of the browser; yield messages as `begin` does.

        Raises:
            ToolFailure: no login is waiting, the address belongs to another login, or the login failed.
        """
        name, going = connection.config.name, self._going.get(connection)
        if going is None or going.is_over:
            raise ToolFailure(f"no login to {name} is going on; /mcp auth {name} begins one", CATEGORY)
        going.paste(text)
        async for line in going.follow(from_now=True):
            yield line

    async def end(self, connection: "ServerConnection") -> str:
        """Log out: delete the stored tokens, and revoke them if the server supports that; return a message about it.

        Raises:
            ToolFailure: the server has no login, or the store cannot be used.
        """
        config, endpoint = connection.config, _require_oauth(connection)
        if (going := self._going.pop(connection, None)) is not None:
            await going.aclose()
        try:
            kept = await self._kept.find(config, endpoint.url)
            await self._kept.delete(config)
        except OAuthError as error:
            raise ToolFailure(f"the login to {config.name} was not forgotten: {error}", CATEGORY) from error
        is_revoked = False if kept is None else await _revoke(kept, connection, endpoint)
        await connection.refresh()
        if kept is None:
            return f"Nobody was logged in to {config.name}."
        if is_revoked:
            return f"Logged out of {config.name}; its server has revoked the tokens."
        return f"Logged out of {config.name}; its server has not revoked the token, which stays valid until it ends."

    async def aclose(self) -> None:
        """Cancel all logins."""
        going, self._going = list(self._going.values()), {}
        await asyncio.gather(*(login.aclose() for login in going))


def _require_oauth(connection: "ServerConnection") -> HttpEndpoint:
    config, endpoint = connection.config, connection.config.endpoint
    if not isinstance(endpoint, HttpEndpoint):
        raise ToolFailure(f"the MCP server {config.name!r} is a program here; there is nothing to log in to", CATEGORY)
    if config.origin is Origin.CLIENT:
        raise ToolFailure(f"the MCP server {config.name!r} is a client's own; send its token in headers", CATEGORY)
    if config.oauth.is_of_machine:
        raise ToolFailure(
            f"the MCP server {config.name!r} is logged in to without a user, by {config.oauth.grant_type} as "
            f"{config.oauth.client_id}; /mcp says what is wrong with it",
            CATEGORY,
        )
    if config.auth_provider != DISCOVERED:
        raise ToolFailure(
            f"the MCP server {config.name!r} is logged in to by {config.auth_provider}; for these, run "
            "gcloud auth application-default login",
            CATEGORY,
        )
    return endpoint


async def _revoke(kept: StoredToken, connection: "ServerConnection", endpoint: HttpEndpoint) -> bool:
    """Revoke the tokens; return whether the server did so."""
    url = kept.endpoints.revoke if kept.endpoints is not None else None
    if url is None or kept.registration is None:
        return False
    http, is_taken = http_of(connection.config, endpoint.url), False
    for hint, token in (("refresh_token", kept.refresh_token), ("access_token", kept.access_token)):
        if token is None:
            continue
        form, headers = authenticated({"token": token, "token_type_hint": hint}, kept.registration.client)
        try:
            answer = await http.post(url, "the revocation endpoint", form=form, headers=headers)
        except OAuthError:
            return False
        is_taken = answer.status == 200
    return is_taken
