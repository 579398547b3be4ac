"""Tokens of the user's Google account for a server: of Application Default Credentials or a service account.

``google_credentials`` sends an access token with the configured scopes; ``service_account_impersonation`` an ID token
of a service account for an audience, from IAM's generateIdToken (servers behind Identity-Aware Proxy require it).
google-auth does the work, in a thread with a deadline. It may send requests only to https addresses, this machine and
Google's metadata server. Not here: the configurations that may use this, see
:mod:`isthmus.mcp_host.config.server_config`.
"""

import asyncio
import base64
import json
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, cast
from urllib.parse import quote, urlsplit

from isthmus.mcp_host.config.server_config import IMPERSONATION, HttpEndpoint, ServerConfig
from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.oauth.bearer import BearerAuth, Report
from isthmus.mcp_host.oauth.http import place
from isthmus.network.loopback import is_loopback
from isthmus.runtime.threads import in_thread

CLOUD_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
IAM = "https://iamcredentials.googleapis.com"
IAM_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS"
"""gcloud's own variable for another address of IAM, such as a private one."""
ANSWER_SECONDS = 10.0
WHOLE_SECONDS = 25.0
SKEW_SECONDS = 120.0
UNKNOWN_SECONDS = 600.0
"""Time in seconds for which a token with an unknown lifetime is used."""
_METADATA_HOSTS = ("metadata.google.internal", "169.254.169.254")
_ADVICE = "run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS"


@dataclass(slots=True)
class GoogleSource:
    """Bearer tokens of a Google account. ``headers`` are sent with the token."""

    config: ServerConfig
    url: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    _token: str | None = field(default=None, repr=False)
    _ends_at: float = 0.0
    _credentials: Any = field(default=None, repr=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def current(self) -> str | None:
        """Return the token to send.

        Raises:
            OAuthError: there are no credentials, or Google issues no token for them.
        """
        host = urlsplit(self.url).hostname or ""
        if not self.url.lower().startswith("https://") and not is_loopback(host):
            raise OAuthError(f"tokens of a Google account go to https:// only, and {place(self.url)} is not")
        async with self._lock:
            if self._token is None or self._ends_at - time.time() <= SKEW_SECONDS:
                await self._fetch()
            return self._token

    async def renewed(self, refused: str) -> str:
        """Return another token than the one that the server refused.

        Raises:
            OAuthError: Google issues no token.
        """
        async with self._lock:
            if self._token is None or self._token == refused:
                await self._fetch()
            return self._token or ""

    async def refused(self, token: str) -> None:
        """Report that the server refuses a new token.

        Raises:
            OAuthError: always.
        """
        self._token = None
        wanted = "targetAudience and the roles of the service account" if self._is_lent else "oauth.scopes"
        raise OAuthError(f"the server refuses the token of the Google credentials; check {wanted}, or {_ADVICE}")

    async def wants(self, scope: str | None) -> None:
        """Report that the server demands another scope.

        Raises:
            OAuthError: always.
        """
        raise OAuthError(f"the server wants the scope {scope or 'of another kind'}; add it to oauth.scopes")

    @property
    def _is_lent(self) -> bool:
        return self.config.auth_provider == IMPERSONATION

    async def _fetch(self) -> None:
        try:
            self._token, self._ends_at = await in_thread(self._get, WHOLE_SECONDS)
        except TimeoutError as error:
            raise OAuthError(f"Google's credentials gave no token within {WHOLE_SECONDS:g} s") from error

    # --- In a thread -------------------------------------------------------------------------------------------------

    def _get(self) -> tuple[str, float]:
        with _open_request() as request:
            return self._get_with(request)

    def _get_with(self, request: Any) -> tuple[str, float]:
        from google import auth
        from google.auth import exceptions

        google_auth_library = cast("Any", auth)
        try:
            if self._credentials is None:
                scopes = [CLOUD_SCOPE] if self._is_lent else list(self.config.oauth.scopes)
                self._credentials = google_auth_library.default(scopes=scopes, request=request)[0]
            credentials = self._credentials
            credentials.refresh(request)
        except exceptions.DefaultCredentialsError as error:
            raise OAuthError(f"there are no Google credentials here; {_ADVICE}") from error
        except exceptions.GoogleAuthError as error:
            raise OAuthError(f"Google gives no token for its credentials: {_reason(error)}") from error
        if self._is_lent:
            return self._lent(credentials, request)
        project: object = getattr(credentials, "quota_project_id", None)
        if isinstance(project, str) and project:
            self.headers["X-Goog-User-Project"] = project
        expiry: Any = credentials.expiry
        ends_at = time.time() + UNKNOWN_SECONDS if expiry is None else expiry.replace(tzinfo=UTC).timestamp()
        return str(credentials.token), ends_at

    def _lent(self, credentials: Any, request: Any) -> tuple[str, float]:
        from google.auth import exceptions

        account = self.config.target_service_account or ""
        base = (os.environ.get(IAM_VARIABLE) or IAM).rstrip("/")
        try:
            response: Any = request(
                f"{base}/v1/projects/-/serviceAccounts/{quote(account, safe='@')}:generateIdToken",
                method="POST",
                body=json.dumps({"audience": self.config.target_audience, "includeEmail": True}).encode(),
                headers={"Authorization": f"Bearer {credentials.token}", "Content-Type": "application/json"},
            )
        except exceptions.GoogleAuthError as error:
            raise OAuthError(f"IAM cannot be asked for a token of {account}: {_reason(error)}") from error
        try:
            answer: Any = json.loads(response.data)
            token: Any = answer["token"] if response.status == 200 else None
        except (ValueError, KeyError, TypeError):
            token = None
        if not isinstance(token, str) or not token:
            raise OAuthError(
                f"IAM gives no token of {account} (HTTP {response.status}); your account needs the role "
                "roles/iam.serviceAccountTokenCreator on it"
            )
        return token, _end_of(token)


def google_auth(config: ServerConfig, endpoint: HttpEndpoint, report: Report) -> BearerAuth:
    """Return the authentication that sends Google's tokens to a server."""
    source = GoogleSource(config, endpoint.url)
    return BearerAuth(source, report, source.headers)


@contextmanager
def _open_request() -> Generator[Any]:
    """Yield google-auth's HTTP function, restricted to the permitted addresses, without redirects."""
    import requests
    from google.auth import exceptions
    from google.auth.transport import requests as transport

    session = requests.Session()
    session.max_redirects = 0
    ask = cast("Any", transport).Request(session)

    def checked(
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Any:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme != "https" and not is_loopback(host) and host not in _METADATA_HOSTS:
            raise cast("Any", exceptions).TransportError(f"{place(url)} is not https")
        return ask(url, method, body, headers, min(timeout or ANSWER_SECONDS, ANSWER_SECONDS), **options)

    with session:
        yield checked


def _end_of(token: str) -> float:
    """Return the expiry time of an ID token, in seconds since 1970."""
    try:
        payload = token.split(".")[1]
        values: Any = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(values["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return time.time() + UNKNOWN_SECONDS


def _reason(error: Exception) -> str:
    """Return the message of an error, without the response bodies that google-auth adds."""
    first = error.args[0] if error.args else type(error).__name__
    return str(first)[:300]
