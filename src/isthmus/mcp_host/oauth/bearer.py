"""Authentication of requests to a server with a bearer token, which is renewed when the server refuses it.

Tokens come from a BearerSource: a stored login (:mod:`isthmus.mcp_host.oauth.stored_login`), a login without a user
(:mod:`isthmus.mcp_host.oauth.machine_login`) or a Google account (:mod:`isthmus.mcp_host.oauth.google_account`). A
problem that only a user can solve is reported, not raised: a refused request must not break the session. Not here:
logging a user in, see :mod:`isthmus.mcp_host.oauth.logins`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias

import httpx2

from isthmus.mcp_host.connection.errors import ConnectFailedError, NeedsLoginError, OAuthError
from isthmus.mcp_host.oauth.messages import Challenge

LoginProblem: TypeAlias = NeedsLoginError | ConnectFailedError
Report: TypeAlias = Callable[[LoginProblem | None], None]
"""Callback that gets the reason why logging in is currently impossible; None once it works."""


class BearerSource(Protocol):
    """Source of tokens for one server. Its methods raise NeedsLoginError or OAuthError."""

    async def current(self) -> str | None:
        """Return the token to send; None to send no token."""
        ...

    async def renewed(self, refused: str) -> str:
        """Return another token than the one that the server refused."""
        ...

    async def refused(self, token: str) -> None:
        """Handle that the server refuses the renewed token as well."""
        ...

    async def wants(self, scope: str | None) -> None:
        """Handle that the server demands this scope."""
        ...


class BearerAuth(httpx2.Auth):
    """Authentication of requests with the tokens of a source. Each request gets the current values of ``headers``."""

    def __init__(self, source: BearerSource, report: Report, headers: Mapping[str, str] | None = None) -> None:
        self._source = source
        self._report = report
        self._headers: Mapping[str, str] = {} if headers is None else headers

    async def check(self) -> None:
        """Make sure, before any request is sent, that the source has a token.

        Raises:
            NeedsLoginError: only a user can get a token.
            ConnectFailedError: a token is temporarily not available.
        """
        try:
            await self._source.current()
        except (NeedsLoginError, OAuthError) as error:
            problem = _problem(error)
            self._report(problem)
            raise problem from error

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request with a token; if the server answers 401, send it once more with another token."""
        token = await self._result(self._source.current())
        if token is None:
            yield request
            return
        response = yield self._with(request, token)
        if response.status_code == 401:
            other = await self._result(self._source.renewed(token))
            if other is None:
                return
            response = yield self._with(request, other)
            if response.status_code == 401:
                await self._result(self._source.refused(other))
                return
        challenge = Challenge.of(response.headers.get("www-authenticate"))
        if response.status_code == 403 and challenge.error == "insufficient_scope":
            await self._result(self._source.wants(challenge.scope))
        elif response.status_code < 400:
            self._report(None)

    def _with(self, request: httpx2.Request, token: str) -> httpx2.Request:
        request.headers["Authorization"] = f"Bearer {token}"
        for name, value in self._headers.items():
            request.headers.setdefault(name, value)
        return request

    async def _result(self, step: Awaitable[str | None]) -> str | None:
        try:
            return await step
        except (NeedsLoginError, OAuthError) as error:
            self._report(_problem(error))
        return None


def _problem(error: NeedsLoginError | OAuthError) -> LoginProblem:
    if isinstance(error, NeedsLoginError):
        return error
    return ConnectFailedError(f"it cannot be logged in to now: {error}")
