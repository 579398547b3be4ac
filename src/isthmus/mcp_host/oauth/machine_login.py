"""Login to a server without a user: client credentials (SEP-1046), or the exchange of an ID token (SEP-990).

The token is kept only in memory, since it is easy to get another one. Not here: the settings, see
:mod:`isthmus.mcp_host.config.oauth_settings`, and sending the token, see :mod:`isthmus.mcp_host.oauth.bearer`.
"""

import asyncio
import time
from pathlib import Path
from typing import NoReturn

from isthmus.files.atomic import read_regular
from isthmus.mcp_host.config.oauth_settings import GrantType, IdentitySettings, SecretText
from isthmus.mcp_host.config.server_config import HttpEndpoint, ServerConfig
from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.oauth.challenge import challenge_of
from isthmus.mcp_host.oauth.discovery import Found, discover, issuer_endpoints
from isthmus.mcp_host.oauth.http import OAuthHttp, place
from isthmus.mcp_host.oauth.messages import (
    Challenge,
    Form,
    Grant,
    OAuthClient,
    authenticated,
    granted,
    renewal_margin,
    said,
    secret_method,
    union,
)
from isthmus.runtime.threads import in_thread

MAXIMUM_SECRET_BYTES = 64 * 1024
FILE_SECONDS = 10.0
"""Maximum time in seconds to read a key or an ID token."""
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 - the name of a grant
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 - the name of a type


class MachineLogin:
    """Bearer tokens by client credentials or an ID token, without a user."""

    def __init__(self, config: ServerConfig, endpoint: HttpEndpoint, http: OAuthHttp) -> None:
        self._config = config
        self._endpoint = endpoint
        self._http = http
        self._grant: Grant | None = None
        self._ends_at = time.monotonic()
        self._wanted_scope: str | None = None
        self._getting = asyncio.Lock()

    async def current(self) -> str:
        """Return the token to send.

        Raises:
            OAuthError: the server does not issue one now.
        """
        async with self._getting:
            grant = self._grant
            if grant is None or time.monotonic() >= self._ends_at:
                grant = await self._get()
            return grant.access_token

    async def renewed(self, refused: str) -> str:
        """Return another token than the one that the server refused."""
        async with self._getting:
            grant = self._grant
            if grant is None or grant.access_token == refused:
                grant = await self._get()
            return grant.access_token

    async def refused(self, token: str) -> NoReturn:
        """Report that the server refuses the new token as well.

        Raises:
            OAuthError: always.
        """
        self._grant = None
        raise OAuthError("the server refuses the token that it was given for oauth.clientId")

    async def wants(self, scope: str | None) -> NoReturn:
        """Note a scope that the server demands, for the next token to request.

        Raises:
            OAuthError: always; the next request gets a token of that scope.
        """
        self._wanted_scope = union(self._wanted_scope, scope)
        self._grant = None
        raise OAuthError(f"it wants more rights{f' ({scope})' if scope else ''}; the next request asks for them")

    async def _get(self) -> Grant:
        oauth, url = self._config.oauth, self._endpoint.url
        challenge = Challenge() if oauth.token_url else (await challenge_of(self._endpoint) or Challenge())
        found = await discover(self._http, url, oauth, challenge, is_for_user=False)
        scope = union(" ".join(oauth.scopes) or found.scope, self._wanted_scope)
        form: Form = {"grant_type": oauth.grant_type.value, "resource": found.resource}
        if oauth.grant_type is GrantType.ID_JAG and oauth.identity is not None:
            form["grant_type"] = _JWT_BEARER
            form["assertion"] = await self._exchanged(oauth.identity, found, scope)
        if scope:
            form["scope"] = scope
        if oauth.audiences:
            form["audience"] = " ".join(oauth.audiences)
        sent, headers = await self._as_client(form, found)
        token_url = found.endpoints.token
        answer = await self._http.post(token_url, "the token endpoint", form=sent, headers=headers)
        grant = self._grant = granted(answer.status, answer.value, place(token_url))
        seconds = float("inf") if grant.seconds is None else grant.seconds - renewal_margin(grant.seconds)
        self._ends_at = time.monotonic() + seconds
        return grant

    async def _as_client(self, form: Form, found: Found) -> tuple[Form, dict[str, str]]:
        """Return the form with the client's authentication, and the headers for it."""
        oauth = self._config.oauth
        client_id = oauth.client_id or ""
        if oauth.private_key is None:
            method = secret_method(found.endpoints, oauth.client_secret)
            return authenticated(form, OAuthClient(client_id, oauth.client_secret, method))
        from mcp.client.auth.extensions.client_credentials import SignedJWTParameters

        key = await _read(oauth.private_key, "oauth.privateKeyFile")
        signed = SignedJWTParameters(
            issuer=client_id, subject=client_id, signing_key=key, signing_algorithm=oauth.signing_algorithm
        )
        try:
            assertion = await signed.create_assertion_provider()(found.endpoints.issuer or found.endpoints.token)
        except Exception as error:  # the library for keys raises many types
            raise OAuthError(f"oauth.privateKey cannot sign with {oauth.signing_algorithm}: {error}") from error
        return {**form, "client_id": client_id, "client_assertion_type": _ASSERTION, "client_assertion": assertion}, {}

    async def _exchanged(self, identity: IdentitySettings, found: Found, scope: str | None) -> str:
        """Return the assertion that the identity provider gives for the ID token."""
        url, method = identity.token_url, "client_secret_post" if identity.client_secret else "none"
        if url is None:
            endpoints = await issuer_endpoints(self._http, identity.issuer or "")
            url, method = endpoints.token, secret_method(endpoints, identity.client_secret)
        form: Form = {
            "grant_type": _TOKEN_EXCHANGE,
            "requested_token_type": ID_JAG,
            "subject_token": await _read(identity.id_token, "oauth.identity.idTokenFile"),
            "subject_token_type": _ID_TOKEN,
            "audience": found.endpoints.issuer or found.endpoints.token,
            "resource": found.resource,
        }
        if scope:
            form["scope"] = scope
        sent, headers = authenticated(form, OAuthClient(identity.client_id, identity.client_secret, method))
        answer = await self._http.post(url, "the identity provider", form=sent, headers=headers)
        values = answer.object
        token = values.get("access_token")
        if answer.status >= 400 or "error" in values:
            raise OAuthError(f"the identity provider {place(url)} gave no assertion: {said(values)}")
        if not isinstance(token, str) or not token or values.get("issued_token_type") != ID_JAG:
            raise OAuthError(f"the answer of the identity provider {place(url)} holds no assertion of type {ID_JAG}")
        return token


async def _read(secret: SecretText, key: str) -> str:
    """Return a secret. A file is read each time, since its content may change."""
    if secret.file is None:
        return secret.value or ""
    try:
        text = await in_thread(lambda path=secret.file: _text(path), FILE_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise OAuthError(f"{key} {secret.file} cannot be read: {error}") from error
    return text.strip()


def _text(path: Path) -> str:
    return read_regular(path, MAXIMUM_SECRET_BYTES).decode("utf-8")
