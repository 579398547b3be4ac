"""Fetches a server's agent card over HTTP: its address, the trusted authorities, and the endpoint that it names.

A card is first requested without the token. The token is sent only to the origin that the user named.
The card is read in :mod:`isthmus.a2a.client.discovery`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import httpx2

from isthmus.a2a.client.answers import RemoteError, check_status, http_failure, json_of
from isthmus.a2a.client.discovery import is_card
from isthmus.a2a.protocol.vocabulary import CARD_PATHS
from isthmus.network.client_tls import ClientTls, client_tls
from isthmus.network.loopback import LOOPBACK_NAMES
from isthmus.rpc.wire_log import WireLog

MAX_CARD_BYTES = 4_000_000
_WIRE = WireLog("A2A")
_NOWHERE = (*LOOPBACK_NAMES, "0.0.0.0", "::", "")  # noqa: S104 - compared, not bound


def authorities(ca_file: Path | None, *, is_encrypted: bool = True) -> ClientTls:
    """Return the certificate authorities to trust: those in ``ca_file`` or in SSL_CERT_FILE, else the usual ones.

    With encryption, or with a file, they are read at once.

    Raises:
        RemoteError: they cannot be read.
    """
    tls = client_tls() if ca_file is None else client_tls({"SSL_CERT_FILE": str(ca_file)})
    if is_encrypted or ca_file is not None:
        try:
            tls.load()
        except OSError as error:
            if ca_file is None:
                raise RemoteError(str(error)) from error
            text = f"no certificates can be read from the file {ca_file} (expected PEM): {error.__cause__}"
            raise RemoteError(text) from error
    return tls


def base_of(url: str) -> httpx2.URL:
    """Return the base URL of a server.

    Raises:
        RemoteError: it is not the URL of a server, or contains credentials.
    """
    try:
        base = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise RemoteError(f"{url!r} is not a URL: {error}") from error
    if base.userinfo:
        raise RemoteError(
            "the URL contains a user or a token, which others could see; remove it, and give the token with "
            "--token-file or ISTHMUS_A2A_TOKEN"
        )
    if base.scheme not in ("http", "https") or not base.host:
        raise RemoteError(f"{url!r} is not the URL of a server: expected http://HOST:PORT/ or https://...")
    return base


async def fetch_card(http: httpx2.AsyncClient, base: httpx2.URL, token: str | None) -> Mapping[str, Any]:
    """Return the agent card of the server at ``base``, which may also be the URL of the card.

    Raises:
        RemoteError: the server cannot be used, or has no card.
    """
    if base.path.endswith(".json"):
        places = [base]
    else:
        places = [base.copy_with(raw_path=(base.path.rstrip("/") + path).encode()) for path in CARD_PATHS]
    for place in places:
        # A card is usually public; the token is sent only to a server that asks for it.
        response, body = await _fetched(http, place, str(base), {})
        if response.status_code in (401, 403) and token is not None:
            response, body = await _fetched(http, place, str(base), authorization(token))
        if response.status_code in (404, 405):
            continue
        check_status(response, str(base), has_token=token is not None)
        card = json_of(body, str(base))
        if is_card(card):
            return cast("Mapping[str, Any]", card)
        break
    raise RemoteError(f"{base} is not an A2A server: it has no agent card at {places[0].path}")


async def _fetched(
    http: httpx2.AsyncClient, place: httpx2.URL, url: str, headers: Mapping[str, str]
) -> tuple[httpx2.Response, bytes]:
    _WIRE.sent(f"GET {place.path}")
    try:
        async with http.stream("GET", place, headers={"Accept": "application/json", **headers}) as response:
            body = await read_body(response, MAX_CARD_BYTES, url)
    except httpx2.HTTPError as error:
        raise http_failure(url, error) from error
    _WIRE.received(f"{response.status_code} {response.reason_phrase}", body)
    return response, body


async def read_body(response: httpx2.Response, limit: int, url: str) -> bytes:
    """Return the body of a response.

    Raises:
        RemoteError: it has more than ``limit`` bytes.
    """
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > limit:
            raise RemoteError(f"{url} answered with more than {limit:,} bytes, which is the maximum")
    return bytes(body)


def endpoint_of(base: httpx2.URL, stated: str, *, has_token: bool) -> httpx2.URL:
    """Return the URL for requests, given the one in the card. With a token it keeps the origin that the user named."""
    try:
        url = httpx2.URL(stated)
    except httpx2.InvalidURL as error:
        raise RemoteError(f"the agent card of {base} has no valid url: {error}") from error
    # A server behind a proxy or in a container often states an address that does not work from outside.
    is_elsewhere = url.scheme in ("http", "https") and url.host not in _NOWHERE and url.host != base.host
    if is_elsewhere and not has_token:
        return url.copy_with(fragment=None, username=None, password=None)
    return base.copy_with(raw_path=url.raw_path or b"/", fragment=None)


def authorization(token: str | None) -> dict[str, str]:
    """Return the header with a bearer token; none without a token."""
    return {"Authorization": f"Bearer {token}"} if token else {}
