"""Whether a host accepts connections: the sign that a network which was away is back."""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

CONNECT_SECONDS = 3.0
"""Maximum time in seconds for the name of a host and a connection to it."""
_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


async def accepts_connections(url: str) -> bool:
    """Return whether the host of a URL accepts a TCP connection now; nothing is sent over it.

    An address that has no host, or none that can be asked, counts as one that does.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return True
    if not host or port is None:
        return True
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError, UnicodeError):
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True
