"""Sends one push notification over HTTP to an address that was checked, and says what came of it.

The name is resolved here, every address of it is held against the rule, and the connection goes to one of these very
addresses, with the name in Host and TLS: a name that changes its mind in between gains nothing. No redirect is
followed, no proxy asked, nothing of the answer but its head is read. Deliberately not here: when and how often.
"""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from isthmus.a2a.push.targets import Place, PushRefused, PushRule, place_of
from isthmus.client import PushTarget
from isthmus.errors import IsthmusError

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    import httpx2

RESOLVE_SECONDS = 5.0
SEND_SECONDS = 15.0
"""How long a receiver may take to answer, all in all."""
ADDRESSES = 4
"""Addresses of a name that are tried."""
RETRY_AFTER_SECONDS = 3600.0
"""The longest wait that a receiver may ask for."""

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]


class PushFailed(IsthmusError):
    """A notification did not arrive. ``retry_after`` is how many seconds the receiver wants to be left alone.

    With ``is_gone`` the receiver says that it will never take any.
    """

    def __init__(self, message: str, *, retry_after: float | None = None, is_gone: bool = False) -> None:
        self.retry_after = retry_after
        self.is_gone = is_gone
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
    """Sends to what ``rule`` allows. ``deadline`` is in seconds."""

    def __init__(
        self, rule: PushRule | None = None, *, resolve: Resolve = resolve_name, deadline: float = SEND_SECONDS
    ) -> None:
        self._rule = rule or PushRule()
        self._resolve = resolve
        self._deadline = deadline
        self._clients: dict[str, asyncio.Task[httpx2.AsyncClient]] = {}

    async def check(self, target: PushTarget) -> None:
        """Make sure that a target may be sent to, as things are now.

        Raises:
            PushRefused: it may not, or its name is none that could ever be resolved. One that cannot be resolved just
                now is taken: each attempt to send looks it up again.
        """
        place = place_of(target)
        try:
            await self._addresses(place)
        except PushFailed as error:
            last = place.host.rpartition(".")[2].lower()
            if last == "invalid" or last[:1].isdigit() or ":" in last:  # RFC 6761; an address that is none
                raise PushRefused(f"the push notification URL cannot be used: {error}") from error
            log.info("a push notification URL is taken though %s: it is looked up again when there is news", error)

    async def send(self, target: PushTarget, body: bytes, headers: Mapping[str, str]) -> None:
        """Post ``body``, which is JSON.

        Raises:
            PushFailed: it did not arrive, or the target may not be sent to now.
        """
        try:
            async with asyncio.timeout(self._deadline):
                await self._send(target, body, headers)
        except TimeoutError as error:
            raise PushFailed(f"no answer within {self._deadline:g} s") from error
        except PushRefused as error:
            raise PushFailed(str(error)) from error

    async def aclose(self) -> None:
        """Close what is open."""
        for opening in self._clients.values():
            with contextlib.suppress(Exception):
                await (await opening).aclose()
        self._clients.clear()

    async def _send(self, target: PushTarget, body: bytes, headers: Mapping[str, str]) -> None:
        place = place_of(target)
        addresses = await self._addresses(place)
        client = await self._client(place.scheme)
        import httpx2

        unreachable: httpx2.ConnectError | None = None
        for address in addresses[:ADDRESSES]:
            try:
                status, retry_after = await _post(client, place, address, target, body, headers)
            except httpx2.ConnectError as error:
                unreachable = error
                continue
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise PushFailed(f"the connection broke off ({type(error).__name__})") from error
            if 200 <= status < 300:
                return
            said = "a redirect, which is not followed" if 300 <= status < 400 else "no success"
            raise PushFailed(f"the receiver answered {status}, {said}", retry_after=retry_after, is_gone=status == 410)
        raise PushFailed(f"{place} cannot be reached ({unreachable})") from unreachable

    async def _addresses(self, place: Place) -> Sequence[str]:
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                addresses = await self._resolve(place.host, place.port)
        except TimeoutError as error:
            raise PushFailed(f"the name {place.host} was not resolved within {RESOLVE_SECONDS:g} s") from error
        except (OSError, UnicodeError) as error:
            raise PushFailed(f"the name {place.host} cannot be resolved") from error
        self._rule.require(place, addresses)
        return addresses

    async def _client(self, scheme: str) -> "httpx2.AsyncClient":
        opening = self._clients.get(scheme)
        if opening is None or (opening.done() and opening.exception() is not None):
            opening = self._clients[scheme] = asyncio.create_task(asyncio.to_thread(_open_client, scheme))
        return await asyncio.shield(opening)


def _open_client(scheme: str) -> "httpx2.AsyncClient":
    import httpx2

    # Only where there is TLS: a context with every authority of the world in it is slow to make.
    verify: ssl.SSLContext | bool = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if scheme == "https":
        file = os.environ.get("SSL_CERT_FILE")
        verify = ssl.create_default_context(cafile=file) if file else True
    # No connection is used twice: its certificate was checked for one name, and another may share the address.
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=SEND_SECONDS,
        verify=verify,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
    )


async def _post(
    client: "httpx2.AsyncClient",
    place: Place,
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
        extensions={"timeout": client.timeout.as_dict(), "sni_hostname": place.host},
    )
    response = await client.send(request, stream=True)
    try:
        return response.status_code, _seconds(response.headers.get("retry-after"))
    finally:
        await response.aclose()


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds of a Retry-After header; a date in it is not read."""
    if retry_after is None or not (retry_after.isascii() and retry_after.isdecimal()) or len(retry_after) > 9:
        return None
    return min(float(retry_after), RETRY_AFTER_SECONDS)
