"""HTTP client for the endpoints of an authorization server; each request gets one small JSON answer, with a deadline.

Addresses must be ``https``. Addresses on this machine are allowed if the MCP server is on it too, and ``http`` is
allowed at the origin of the MCP server itself. No redirect is followed.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.elicitation.page_address import UrlError, host_of
from isthmus.network.loopback import is_loopback
from isthmus.record import record

if TYPE_CHECKING:
    import httpx2

    from isthmus.network.checked_transport import AddressPolicy

ANSWER_SECONDS = 10.0
"""Maximum time in seconds for an answer."""
MAXIMUM_ANSWER_BYTES = 1024 * 1024


@record
class Answer:
    """The answer of an endpoint; ``value`` is None if it is not JSON."""

    status: int
    value: Any

    @property
    def object(self) -> Mapping[str, Any]:
        """The answer if it is an object, otherwise an empty object."""
        value: object = self.value
        return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}

    @property
    def document(self) -> Mapping[str, Any]:
        """The answer if it is an object with HTTP status 200, otherwise an empty object."""
        return self.object if self.status == 200 else {}


class OAuthHttp:
    """HTTP client for the endpoints of one MCP server. ``trusted`` are configured addresses; loopback is allowed."""

    def __init__(
        self,
        server_url: str,
        address_policy: "AddressPolicy | None" = None,
        trusted: tuple[str, ...] = (),
        seconds: float | None = None,
    ) -> None:
        self._server = urlsplit(server_url)
        self._address_policy = address_policy
        self._trusted = {_origin(url) for url in trusted}
        self._seconds = ANSWER_SECONDS if seconds is None else seconds

    async def get(self, url: str, what: str) -> Answer:
        """Request a document. ``what`` names it in errors.

        Raises:
            OAuthError: the address is not allowed, or nothing came in time.
        """
        return await self._ask("GET", url, what)

    async def post(
        self,
        url: str,
        what: str,
        *,
        form: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a form, or JSON.

        Raises:
            OAuthError: the address is not allowed, or nothing came in time.
        """
        return await self._ask("POST", url, what, form, body, headers)

    def require(self, url: str, what: str) -> None:
        """Make sure that an address may be requested, or shown to the user.

        Raises:
            OAuthError: it is not allowed; the message gives the reason.
        """
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            host = parts = None
        if parts is None or not host or parts.scheme not in ("https", "http") or parts.username is not None:
            raise OAuthError(f"{what} is not at an http(s) address")
        try:
            host_of(url)
        except UrlError as error:
            raise OAuthError(f"{what} cannot be used: {error}") from error
        if _origin(url) in self._trusted or _origin(url) == _origin(self._server.geturl()):
            return
        if is_loopback(host):
            if not is_loopback(self._server.hostname or ""):
                raise OAuthError(f"{what} is at {host}, on this machine; {self._server.hostname} may not refer to it")
        elif parts.scheme != "https":
            raise OAuthError(f"{what} is at {place(url)}; expected https://")

    async def _ask(
        self,
        method: str,
        url: str,
        what: str,
        form: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        import httpx2

        from isthmus.mcp_host.diagnosis.unreachable import connection_problem
        from isthmus.network.client_tls import client_tls
        from isthmus.network.handshakes import close_cancelled_handshake

        self.require(url, what)
        sent = {"Accept": "application/json", "Accept-Encoding": "identity", **(headers or {})}
        try:
            async with (
                asyncio.timeout(self._seconds),
                httpx2.AsyncClient(
                    transport=self._transport(),
                    timeout=self._seconds,
                    verify=client_tls(),
                    event_hooks={"request": [close_cancelled_handshake]},
                ) as client,
                client.stream(method, url, data=form, json=body, headers=sent) as response,
            ):
                data = await _read(response, what)
        except TimeoutError:
            raise OAuthError(f"{what} {place(url)} did not answer within {self._seconds:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            if isinstance(error, httpx2.TimeoutException):
                raise OAuthError(f"{what} {place(url)} did not answer within {self._seconds:g} s") from error
            raise OAuthError(f"{what} {place(url)} cannot be reached: {connection_problem(error)}") from error
        try:
            value: Any = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        return Answer(response.status_code, value)

    def _transport(self) -> "httpx2.AsyncBaseTransport | None":
        if self._address_policy is None:
            return None
        from isthmus.network.checked_transport import CheckedTransport

        return CheckedTransport(self._address_policy)


async def _read(response: "httpx2.Response", what: str) -> bytes:
    data = bytearray()
    async for part in response.aiter_raw():
        data += part
        if len(data) > MAXIMUM_ANSWER_BYTES:
            raise OAuthError(f"{what} answered with more than {MAXIMUM_ANSWER_BYTES} bytes")
    return bytes(data)


def place(url: str) -> str:
    """Return an address for messages: without user and query."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
