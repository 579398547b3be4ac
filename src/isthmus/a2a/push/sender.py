"""Sends one push notification over HTTP, to an address that was checked.

The host's name is resolved here, every address is checked against the rule, and the connection goes to one of the
checked addresses, with the name in Host and TLS. So changing the name's addresses in between gains an attacker nothing.
Redirects are not followed, proxies are not used, and only the head of the response is read. Retries are in
:mod:`isthmus.a2a.push.delivery`.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from isthmus.a2a.push.targets import PushOrigin, PushRefused, PushRule, origin_of
from isthmus.client import PushTarget
from isthmus.errors import IsthmusError
from isthmus.network.client_tls import client_tls
from isthmus.network.handshakes import close_cancelled_handshake

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    import httpx2

RESOLVE_SECONDS = 5.0
SEND_SECONDS = 15.0
"""Maximum time in seconds for sending a notification and reading the answer."""
ADDRESSES = 4
"""Maximum number of a name's addresses that are tried."""
RETRY_AFTER_SECONDS = 3600.0
"""Maximum wait in seconds that a receiver may ask for."""

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]


class PushFailed(IsthmusError):
    """A notification did not arrive.

    ``retry_after`` is the time in seconds that the receiver asks to wait. ``is_gone``: the receiver has refused all
    further notifications. ``status`` is the HTTP status of its answer, if there was one.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        is_gone: bool = False,
        status: int | None = None,
    ) -> None:
        self.retry_after = retry_after
        self.is_gone = is_gone
        self.status = status
        super().__init__(message)


async def resolve_name(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, without duplicates.

    Raises:
        OSError: it has none.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class PushSender:
    """Sends notifications to targets that ``rule`` allows. ``deadline`` is in seconds."""

    def __init__(
        self, rule: PushRule | None = None, *, resolve: Resolve = resolve_name, deadline: float = SEND_SECONDS
    ) -> None:
        self._rule = rule or PushRule()
        self._resolve = resolve
        self._deadline = deadline
        self._opening: asyncio.Task[httpx2.AsyncClient] | None = None

    async def check(self, target: PushTarget) -> None:
        """Check that a target may be sent to. A name that cannot be resolved is accepted; sending resolves it again.

        Raises:
            PushRefused: it may not be sent to, or its name can never be resolved.
        """
        origin = origin_of(target)
        try:
            await self._addresses(origin)
        except PushFailed as error:
            last = origin.host.rpartition(".")[2].lower()
            if last == "invalid" or last[:1].isdigit() or ":" in last:  # RFC 6761, or a malformed address
                raise PushRefused(f"the push notification URL cannot be used: {error}") from error
            log.info("a push notification URL is accepted although %s; it is resolved again before sending", error)

    async def send(self, target: PushTarget, body: bytes, headers: Mapping[str, str]) -> None:
        """Send ``body``, which is JSON, by POST.

        Raises:
            PushFailed: it did not arrive, or the target may not be sent to.
        """
        try:
            async with asyncio.timeout(self._deadline):
                await self._send(target, body, headers)
        except TimeoutError as error:
            raise PushFailed(f"no answer within {self._deadline:g} s") from error
        except PushRefused as error:
            raise PushFailed(str(error)) from error

    async def aclose(self) -> None:
        """Close all connections."""
        if self._opening is not None:
            with contextlib.suppress(Exception):
                await (await self._opening).aclose()
            self._opening = None

    async def _send(self, target: PushTarget, body: bytes, headers: Mapping[str, str]) -> None:
        origin = origin_of(target)
        addresses = await self._addresses(origin)
        client = await self._client()
        import httpx2

        unreachable: httpx2.ConnectError | None = None
        for address in addresses[:ADDRESSES]:
            try:
                status, retry_after = await _post(client, origin, address, target, body, headers)
            except httpx2.ConnectError as error:
                unreachable = error
                continue
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise PushFailed(f"the connection broke ({type(error).__name__})") from error
            if 200 <= status < 300:
                return
            hint = " (redirects are not followed)" if 300 <= status < 400 else ""
            text = f"the receiver answered {status}{hint}"
            raise PushFailed(text, retry_after=retry_after, is_gone=status == 410, status=status)
        raise PushFailed(f"{origin} cannot be reached ({unreachable})") from unreachable

    async def _addresses(self, origin: PushOrigin) -> Sequence[str]:
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                addresses = await self._resolve(origin.host, origin.port)
        except TimeoutError as error:
            raise PushFailed(f"the name {origin.host} was not resolved within {RESOLVE_SECONDS:g} s") from error
        except (OSError, UnicodeError) as error:
            raise PushFailed(f"the name {origin.host} cannot be resolved") from error
        self._rule.require(origin, addresses)
        return addresses

    async def _client(self) -> "httpx2.AsyncClient":
        opening = self._opening
        if opening is None or (opening.done() and opening.exception() is not None):
            opening = self._opening = asyncio.create_task(asyncio.to_thread(_open_client))
        return await asyncio.shield(opening)


def _open_client() -> "httpx2.AsyncClient":
    import httpx2

    # Connections are not reused: the certificate was checked for one name, and another name may share the address.
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=SEND_SECONDS,
        verify=client_tls(),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
        event_hooks={"request": [close_cancelled_handshake]},
    )


async def _post(
    client: "httpx2.AsyncClient",
    origin: PushOrigin,
    address: str,
    target: PushTarget,
    body: bytes,
    headers: Mapping[str, str],
) -> tuple[int, float | None]:
    import httpx2

    named = httpx2.URL(target.url)
    request = client.build_request(
        "POST",
        named.copy_with(host=address, fragment=None),
        content=body,
        headers={**headers, "Host": named.netloc.decode(), "Connection": "close"},
        extensions={"timeout": client.timeout.as_dict(), "sni_hostname": origin.host},
    )
    response = await client.send(request, stream=True)
    try:
        return response.status_code, _seconds(response.headers.get("retry-after"))
    finally:
        await response.aclose()


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds in a Retry-After header; None for a date or anything else."""
    if retry_after is None or not (retry_after.isascii() and retry_after.isdecimal()) or len(retry_after) > 9:
        return None
    return min(float(retry_after), RETRY_AFTER_SECONDS)
