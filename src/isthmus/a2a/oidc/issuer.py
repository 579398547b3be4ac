"""The keys of one issuer: asked for over HTTP, kept, and asked for again when a token names an unknown one.

Tokens come from strangers, who may name keys at random: the issuer is asked at most once a minute, by one request at a
time. Until then a token with an unknown key is neither valid nor invalid, since its key may be a new one. While the
issuer cannot be reached, the keys that are known stay valid.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

import httpx2
import jwt

from isthmus.a2a.oidc.claims import TokenRefused
from isthmus.a2a.oidc.keys import IssuerError, IssuerKey, find_key, read_keys
from isthmus.a2a.oidc.tokens import TokenHead
from isthmus.encoding import json_text
from isthmus.encoding.json_text import JsonError
from isthmus.errors import Unavailable
from isthmus.network.client_tls import client_tls
from isthmus.network.handshakes import close_cancelled_handshake
from isthmus.network.loopback import is_loopback

DISCOVERY = "/.well-known/openid-configuration"
"""Path below an issuer's URL of the document that names its keys."""
ASKING_SECONDS = 10.0
"""Maximum time in seconds for asking for the document and the keys, together."""
UNKNOWN_KEY_SECONDS = 60.0
"""Minimum time in seconds between two requests for keys, if some are known."""
RETRY_SECONDS = 5.0
"""Minimum time in seconds between two requests for keys as long as none is known."""
MAXIMUM_AGE = 3600.0
"""Time in seconds after which keys are asked for again; until the answer comes, they are used."""
DOCUMENT_BYTES = 256 * 1024
"""Maximum size of the discovery document."""
KEYS_BYTES = 512 * 1024
"""Maximum size of the keys."""

Fetch: TypeAlias = Callable[[str, int], Awaitable[bytes]]
"""Function that returns the body at a URL up to a number of bytes; raises IssuerError."""

log = logging.getLogger(__name__)


class IssuerUnavailable(Unavailable):
    """The issuer was not asked for the key of a token, which may be valid; after ``seconds`` it can be asked again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            "the issuer of the token cannot be asked for its keys at the moment; send the request again later"
        )
        self.seconds = seconds


def check_url(url: str, *, allows_http: bool = True) -> None:
    """Check that a URL of an issuer is encrypted, or of this machine if ``allows_http``.

    Raises:
        IssuerError: it is not.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise IssuerError(f"{url[:200]!r} is not a URL") from None
    is_safe = parts.scheme == "https" or (allows_http and parts.scheme == "http" and is_loopback(host))
    if not is_safe or not host or "@" in parts.netloc or not url.isprintable() or " " in url or len(url) > 2000:
        raise IssuerError(f"{url[:200]!r} is not a URL such as https://login.example.org (http only on this machine)")


async def fetch(url: str, limit: int) -> bytes:
    """Return the body at a URL. Redirects are not followed, and compressed answers are refused.

    Raises:
        IssuerError: there is no answer, or one of another status than 200 or of more than ``limit`` bytes.
    """
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    body = bytearray()
    try:
        async with (
            httpx2.AsyncClient(
                timeout=ASKING_SECONDS,
                follow_redirects=False,
                verify=client_tls(),
                event_hooks={"request": [close_cancelled_handshake]},
            ) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            if response.status_code != 200:
                raise IssuerError(f"{url} answered with status {response.status_code}, expected 200")
            if response.headers.get("content-encoding", "identity") != "identity":
                raise IssuerError(f"{url} answered with a compressed body")
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > limit:
                    raise IssuerError(f"{url} answered with more than {limit} bytes")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise IssuerError(f"{url} cannot be reached: {type(error).__name__}") from error
    return bytes(body)


class Issuer:
    """The issuer at ``url``, which is compared with the tokens' ``iss`` character by character."""

    def __init__(self, url: str, fetch: Fetch = fetch, clock: Callable[[], float] = time.monotonic) -> None:
        check_url(url)
        if "?" in url or "#" in url:
            raise IssuerError(f"{url[:200]!r} has a query or fragment, which the URL of an issuer never has")
        self.url = url
        self._fetch = fetch
        self._clock = clock
        self._keys: tuple[IssuerKey, ...] = ()
        self._read_at = clock()
        self._asked_at: float | None = None
        self._failure: str | None = None
        self._asking: asyncio.Task[None] | None = None

    @property
    def discovery_url(self) -> str:
        """URL of the document that names the keys (OpenID Connect Discovery 1.0, section 4)."""
        return self.url.rstrip("/") + DISCOVERY

    async def key_of(self, head: TokenHead) -> jwt.PyJWK:
        """Return the key that a token names; ask the issuer if it is unknown, unless that was just done.

        Raises:
            TokenRefused: the issuer does not publish this key.
            IssuerUnavailable: the issuer could not be asked, or may have published the key since it was asked.
        """
        found = find_key(self._keys, head.kid, head.algorithm)
        if found is not None:
            if self._clock() - self._read_at > MAXIMUM_AGE:
                self.ask()
            return found
        asked_before = self._asked_at
        if (asking := self.ask()) is not None:
            await asyncio.shield(asking)  # a client that leaves must not end what others wait for
        found = find_key(self._keys, head.kid, head.algorithm)
        if found is not None:
            return found
        is_answered = self._failure is None and self._asked_at != asked_before  # since the token arrived
        if not is_answered and all(head.kid != key.kid for key in self._keys):
            raise IssuerUnavailable(self._seconds_to_wait)
        raise TokenRefused("the token is signed by a key that its issuer does not publish")

    def ask(self) -> "asyncio.Task[None] | None":
        """Ask for the keys and return the task that does, which never fails; None if it was done a short time ago."""
        if self._asking is None or self._asking.done():
            if self._seconds_to_wait > 0:
                return None
            self._asked_at = self._clock()
            self._asking = asyncio.create_task(self._ask(), name="isthmus-oidc-keys")
        return self._asking

    async def aclose(self) -> None:
        """Stop asking."""
        if self._asking is not None:
            self._asking.cancel()
            with suppress(asyncio.CancelledError):
                await self._asking

    @property
    def _seconds_to_wait(self) -> float:
        """Time in seconds until the issuer may be asked again."""
        if self._asked_at is None:
            return 0.0
        pause = UNKNOWN_KEY_SECONDS if self._keys else RETRY_SECONDS
        return max(0.0, self._asked_at + pause - self._clock())

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(ASKING_SECONDS):
                keys = read_keys(await self._fetch(await self._keys_url(), KEYS_BYTES))
        except (IssuerError, TimeoutError) as error:
            failure = str(error) or f"it did not answer within {ASKING_SECONDS:g} s"
            if failure != self._failure:
                known = "tokens of known keys stay valid" if self._keys else "its users get 503 until then"
                log.warning("the issuer %s cannot be asked for its keys: %s; %s", self.url, failure, known)
            self._failure = failure
            return
        except Exception:
            # Waiters must not get an error that names nothing they can do.
            log.exception("asking the issuer %s for its keys failed because of a bug", self.url)
            self._failure = "a bug"
            return
        if self._failure is not None or not self._keys:
            log.info("the keys of the issuer %s were read: %d", self.url, len(keys))
        self._keys, self._failure, self._read_at = keys, None, self._clock()

    async def _keys_url(self) -> str:
        data = await self._fetch(self.discovery_url, DOCUMENT_BYTES)
        try:
            value: object = json_text.decode(data)
        except JsonError:
            value = None
        if not isinstance(value, dict):
            raise IssuerError(f"{self.discovery_url} is not a JSON object")
        document = cast("dict[str, Any]", value)
        named, place = document.get("issuer"), document.get("jwks_uri")
        if named != self.url:
            stated = f"{named[:200]!r}" if isinstance(named, str) else "none"
            raise IssuerError(f"{self.discovery_url} names the issuer {stated}; --oidc-issuer must be the same text")
        if not isinstance(place, str):
            raise IssuerError(f"{self.discovery_url} does not name a jwks_uri")
        check_url(place, allows_http=self.url.startswith("http:"))
        return place
