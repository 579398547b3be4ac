"""The stored login to one server: provides its token, and renews an expired one.

One process at a time renews, under a lock; a process that waited for the lock finds the new token in the store. If the
refresh token is refused, the whole login is deleted. No user is asked here: NeedsLoginError describes the step that
only a user can take. Not here: requests to the MCP server itself, see :mod:`isthmus.mcp_host.oauth.bearer`.
"""

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.errors import NeedsLoginError, OAuthError
from isthmus.mcp_host.oauth.discovery import canonical
from isthmus.mcp_host.oauth.http import OAuthHttp, place
from isthmus.mcp_host.oauth.login_store import STORE_SECONDS, LoginStore, renewal_lock
from isthmus.mcp_host.oauth.messages import (
    Endpoints,
    Grant,
    OAuthClient,
    TokenRefusedError,
    authenticated,
    granted,
    refresh_form,
    renewal_margin,
    secret_method,
    union,
)
from isthmus.mcp_host.oauth.store import Registration, StoredToken
from isthmus.runtime.threads import in_thread

LOCK_SECONDS = 25.0
"""Maximum wait in seconds for another process that renews the same login."""
LOCK_POLL_SECONDS = 0.05


class StoredLogin:
    """Source of the bearer tokens of a stored login."""

    def __init__(self, config: ServerConfig, url: str, logins: LoginStore, http: OAuthHttp) -> None:
        self._config = config
        self._url = url
        self._logins = logins
        self._http = http
        self._token: StoredToken | None = None
        self._renewing: asyncio.Task[StoredToken] | None = None

    async def current(self) -> str | None:
        """Return the token to send; None if no user is logged in.

        Raises:
            NeedsLoginError: the token has expired, and only a user can get another.
            OAuthError: the token has expired, and cannot be renewed now.
        """
        token = self._token
        if token is None:
            token = self._token = await self._logins.find(self._config, self._url)
        if token is None:
            if self._config.oauth.enabled:
                raise NeedsLoginError(f"it wants a login; use /mcp auth {self._config.name}")
            return None
        if not _ends_soon(token):
            return token.access_token
        try:
            return (await self._renewed(token)).access_token
        except OAuthError:
            if _ends_within(token, 0):
                raise
            return token.access_token

    async def renewed(self, refused: str) -> str:
        """Return another token than the one that the server refused.

        Raises:
            NeedsLoginError: only a user can get one.
            OAuthError: the token cannot be renewed now.
        """
        token = self._token
        if token is not None and token.access_token != refused and not _ends_within(token, 0):
            return token.access_token  # renewed since, for another request
        return (await self._renewed(token or StoredToken(refused))).access_token

    async def refused(self, token: str) -> None:
        """Delete the login, because the server refuses the renewed token as well.

        Raises:
            NeedsLoginError: always.
        """
        kept = await self._logins.find(self._config, self._url)
        if kept is not None and kept.access_token == token:
            await self._logins.delete(self._config)
        self._token = None
        raise NeedsLoginError(self._ended("the server refuses it"))

    async def wants(self, scope: str | None) -> None:
        """Store a scope that the server demands, for the next login to request.

        Raises:
            NeedsLoginError: always, since a token of that scope requires a login.
        """
        token = self._token or await self._logins.find(self._config, self._url)
        if token is not None:
            self._token = replace(token, wanted_scope=union(token.wanted_scope, token.scope, scope))
            await self._logins.save(self._config, self._token)
        rights = f" ({scope})" if scope else ""
        raise NeedsLoginError(f"it wants a login with more rights{rights}; use /mcp auth {self._config.name}")

    async def _renewed(self, seen: StoredToken) -> StoredToken:
        if self._renewing is None or self._renewing.done():
            # A separate task: the caller may be cancelled, and the tokens that the server sends must not be lost.
            self._renewing = asyncio.create_task(self._renew(seen), name=f"renewing the login to {self._config.name}")
            self._renewing.add_done_callback(_retrieve_error)
        token = await asyncio.shield(self._renewing)
        self._token = token
        return token

    async def _renew(self, seen: StoredToken) -> StoredToken:
        try:
            lock = await in_thread(lambda: renewal_lock(self._logins.home, self._config.name), STORE_SECONDS)
            async with _held(lock):
                return await self._renew_alone(seen)
        except (OSError, TimeoutError) as error:
            raise OAuthError(f"the login cannot be renewed now: {error}") from error

    async def _renew_alone(self, seen: StoredToken) -> StoredToken:
        config = self._config
        kept = await self._logins.find(config, self._url)
        if kept is None:
            self._token = None
            raise NeedsLoginError(self._ended("it was logged out"))
        if kept.access_token != seen.access_token and not _ends_soon(kept):
            return kept
        endpoints, client = _endpoints(config, kept), _client(config, kept)
        if kept.refresh_token is None or endpoints is None or client is None:
            return await self._give_up(kept, "it cannot be renewed")
        try:
            grant = await self._refresh(kept.refresh_token, endpoints, client, kept.resource)
        except TokenRefusedError as error:
            return await self._give_up(kept, str(error))
        token = replace(
            kept,
            access_token=grant.access_token,
            refresh_token=grant.refresh_token or kept.refresh_token,
            expires_at=None if grant.seconds is None else time.time() + grant.seconds,
            scope=grant.scope or kept.scope,
            lifetime=grant.seconds,
        )
        await self._logins.save(config, token)
        return token

    async def _refresh(
        self, refresh_token: str, endpoints: Endpoints, client: OAuthClient, resource: str | None
    ) -> Grant:
        form = refresh_form(refresh_token, resource or canonical(self._url), self._config.oauth.audiences)
        sent, headers = authenticated(form, client)
        answer = await self._http.post(endpoints.token, "the token endpoint", form=sent, headers=headers)
        return granted(answer.status, answer.value, place(endpoints.token))

    async def _give_up(self, kept: StoredToken, reason: str) -> StoredToken:
        """Delete a login that cannot be renewed, unless another program has stored a new one in the meantime."""
        now = await self._logins.find(self._config, self._url)
        if now is not None and now.access_token != kept.access_token:
            return now
        await self._logins.delete(self._config)
        self._token = None
        raise NeedsLoginError(self._ended(reason))

    def _ended(self, reason: str) -> str:
        return f"its login has ended: {reason}; use /mcp auth {self._config.name}"


def client_of(config: ServerConfig, endpoints: Endpoints) -> OAuthClient | None:
    """Return the client of the configuration; None if there is none."""
    oauth = config.oauth
    if oauth.client_id is None:
        return None
    return OAuthClient(oauth.client_id, oauth.client_secret, secret_method(endpoints, oauth.client_secret))


def http_of(config: ServerConfig, url: str, seconds: float | None = None) -> OAuthHttp:
    """Return the HTTP client for the endpoints of a server with this configuration."""
    oauth, identity = config.oauth, config.oauth.identity
    of_identity = () if identity is None else (identity.issuer, identity.token_url)
    written = tuple(found for found in (oauth.authorization_url, oauth.token_url, *of_identity) if found)
    return OAuthHttp(url, trusted=written, seconds=seconds)


def _endpoints(config: ServerConfig, kept: StoredToken) -> Endpoints | None:
    token_url = config.oauth.token_url
    if token_url is None:
        return kept.endpoints
    known = kept.endpoints or Endpoints("", token_url)
    return replace(known, token=token_url)


def _client(config: ServerConfig, kept: StoredToken) -> OAuthClient | None:
    registered: Registration | None = kept.registration
    if config.oauth.client_id is None:
        return None if registered is None else registered.client
    if registered is not None and registered.client.id == config.oauth.client_id:
        return replace(registered.client, secret=config.oauth.client_secret)
    return OAuthClient(
        config.oauth.client_id,
        config.oauth.client_secret,
        "client_secret_post" if config.oauth.client_secret else "none",
    )


def _ends_soon(token: StoredToken) -> bool:
    return _ends_within(token, renewal_margin(token.lifetime))


def _ends_within(token: StoredToken, seconds: float) -> bool:
    return token.expires_at is not None and token.expires_at - time.time() <= seconds


def _retrieve_error(task: "asyncio.Task[StoredToken]") -> None:
    """Retrieve the error of a renewal, since its caller may have been cancelled."""
    if not task.cancelled():
        task.exception()


@contextlib.asynccontextmanager
async def _held(path: Path) -> AsyncGenerator[None]:
    """Hold a lock file while the block runs. It polls instead of blocking a thread, so that it can be cancelled."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another process renews it for {LOCK_SECONDS:g} s") from error
                await asyncio.sleep(LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)
