"""Logging in to remote servers by OAuth: the SDK's provider over our storage.

The SDK forgets, with the process, when a token ends and where it is renewed, and then asks the person again; both are
kept here (python-sdk#3250). Without a person there, what would open a browser is NeedsLoginError instead. Deliberately
not here: receiving the redirect (:mod:`isthmus.mcp_host.login`).
"""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import ValidationError

from isthmus.mcp_host.config import HttpEndpoint, ServerConfig
from isthmus.mcp_host.errors import NeedsLoginError
from isthmus.mcp_host.oauth_store import StoredToken, TokenStore

REDIRECT_URI = "http://localhost:7777/oauth/callback"

Redirect = Callable[[str], Awaitable[None]]
Callback = Callable[[], Awaitable[AuthorizationCodeResult]]


class _Storage:
    """The SDK's TokenStorage over our file, for one server."""

    def __init__(self, store: TokenStore, config: ServerConfig, url: str) -> None:
        self.store = store
        self.config = config
        self.url = url
        self.found = store.find(config.name, url)
        self.provider: LoginProvider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        if self.found is None:
            return None
        expires = self.found.expires_at
        return OAuthToken(
            access_token=self.found.access_token,
            refresh_token=self.found.refresh_token,
            scope=self.found.scope,
            expires_in=None if expires is None else round(expires - time.time()),
        )

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self.provider.context if self.provider is not None else None
        client = context.client_info if context is not None else None
        metadata = context.oauth_metadata if context is not None else None
        self.found = StoredToken(
            tokens.access_token,
            tokens.refresh_token,
            None if tokens.expires_in is None else time.time() + tokens.expires_in,
            tokens.scope,
            client_id=client.client_id if client is not None else None,
            token_url=str(metadata.token_endpoint) if metadata is not None else None,
            server_url=self.url,
            client=_json(client),
            metadata=_json(metadata),
        )
        self.store.save(self.config.name, self.found)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        oauth = self.config.oauth
        if oauth.client_id is not None:
            return OAuthClientInformationFull.model_validate(
                {
                    "client_id": oauth.client_id,
                    "client_secret": oauth.client_secret,
                    "redirect_uris": [oauth.redirect_uri or REDIRECT_URI],
                    "token_endpoint_auth_method": "client_secret_post" if oauth.client_secret else "none",
                }
            )
        if self.found is None:
            return None
        try:
            if self.found.client is not None:
                return OAuthClientInformationFull.model_validate(self.found.client)
            if self.found.client_id is not None:
                return OAuthClientInformationFull.model_validate({"client_id": self.found.client_id})
        except ValidationError:
            return None
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Kept with the tokens: a registration without any is made anew."""

    def metadata(self) -> OAuthMetadata | None:
        """What is known of the authorization server from before."""
        found = self.found
        try:
            if found is not None and found.metadata is not None:
                return OAuthMetadata.model_validate(found.metadata)
            oauth = self.config.oauth
            token_url = oauth.token_url or (found.token_url if found is not None else None)
            if token_url is None:
                return None
            origin = httpx2.URL(token_url).copy_with(path="/", query=None, fragment=None)
            return OAuthMetadata.model_validate(
                {
                    "issuer": str(origin),
                    "authorization_endpoint": oauth.authorization_url or str(origin.join("/authorize")),
                    "token_endpoint": token_url,
                }
            )
        except (ValidationError, httpx2.InvalidURL):
            return None


class LoginProvider(OAuthClientProvider):
    """The SDK's provider, which also remembers what it knew before the process ended."""

    def __init__(self, storage: _Storage, redirect_uri: str, redirect: Redirect, callback: Callback) -> None:
        self._own = storage
        metadata = OAuthClientMetadata.model_validate(
            {"redirect_uris": [redirect_uri], "client_name": "Isthmus", "token_endpoint_auth_method": "none"}
        )
        super().__init__(storage.url, metadata, storage, redirect, callback)
        storage.provider = self

    async def _initialize(self) -> None:
        await super()._initialize()
        if self._own.found is not None:
            self.context.token_expiry_time = self._own.found.expires_at
        self.context.oauth_metadata = self._own.metadata()

    async def _perform_authorization(self) -> httpx2.Request:
        scopes = self._own.config.oauth.scopes
        if scopes:
            self.context.client_metadata.scope = " ".join(scopes)
        return await super()._perform_authorization()


def stored_login(config: ServerConfig, home: Path) -> httpx2.Auth | None:
    """What a connection logs in with: the kept tokens of the server, renewed when they ended; None without any."""
    if not isinstance(config.endpoint, HttpEndpoint):
        return None
    storage = _Storage(TokenStore.of(home), config, config.endpoint.url)
    if storage.found is None:
        return None

    async def redirect(_url: str) -> None:
        # Refused, and not to be renewed: what is kept is of no use any more.
        storage.store.delete(config.name)
        raise NeedsLoginError("its login has ended")

    async def callback() -> AuthorizationCodeResult:
        raise NeedsLoginError("its login has ended")

    return LoginProvider(storage, config.oauth.redirect_uri or REDIRECT_URI, redirect, callback)


def interactive_login(
    config: ServerConfig, url: str, home: Path, redirect_uri: str, redirect: Redirect, callback: Callback
) -> httpx2.Auth:
    """What logs a person in: from the beginning, whatever is kept."""
    storage = _Storage(TokenStore.of(home), config, url)
    storage.found = None
    return LoginProvider(storage, redirect_uri, redirect, callback)


def _json(model: OAuthClientInformationFull | OAuthMetadata | None) -> dict[str, Any] | None:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
