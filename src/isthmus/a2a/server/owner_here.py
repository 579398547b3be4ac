"""Whether a request of the server's owner comes from a program of the same user on the same machine. Blocks briefly.

This user's client may have the server start commands. The owner's token alone is not enough: it may be used from other
machines, and a proxy on this machine sends their requests from here. Not here: tokens, see
:mod:`isthmus.a2a.server.users.auth`; whether the server takes such clients at all, see
:mod:`isthmus.programs.serve.serving`.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request

from isthmus.network.loopback import LOOPBACK_NAMES, another_user_connects, is_loopback

_FORWARDED = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "x-original-host", "true-client-ip"})
"""Headers that proxies add, besides those that begin with X-Forwarded."""
_OF_PAGES = frozenset({"origin", "referer", "cookie"})
"""Headers that only browsers send, besides those that begin with Sec-Fetch."""


def names_command(body: bytes) -> bool:
    """Return whether AgentSettings in a request may name a command; if they do not, nothing has to be known of it."""
    return b'"command"' in body


async def is_owner_here(request: Request) -> bool:
    """Return whether a request with the owner's token comes from a program of this user on this machine."""
    client, server = _ports(request.scope)
    if client is None or server is None or not is_direct(request.headers.keys(), request.headers.get("host")):
        return False
    return await asyncio.to_thread(another_user_connects, client, server) is None


def is_direct(headers: Iterable[str], host: str | None) -> bool:
    """Return whether the headers of a request say nothing of a proxy or a web page."""
    names = {name.lower() for name in headers}
    if names & (_FORWARDED | _OF_PAGES) or any(name.startswith(("x-forwarded", "sec-fetch")) for name in names):
        return False
    try:
        return urlsplit(f"//{host or ''}").hostname in LOOPBACK_NAMES
    except ValueError:
        return False


def _ports(scope: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the ports of both ends of a connection; None if an end is not on the loopback interface."""
    client, server = (_port(scope.get(name)) for name in ("client", "server"))
    return client, server


def _port(address: tuple[str, int | None] | None) -> int | None:
    return address[1] if address is not None and is_loopback(address[0]) else None
