"""HTTP clients of servers on this machine, without TLS.

They make no TLS context: one with every authority of the world in it takes 20 ms of the processor.
"""

import ssl
from typing import Any

import httpx2

SECONDS = 60
"""How long an answer may take on a busy machine."""
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody; what a request that is not made by a client of here is given as ``verify``."""


def plain_client(*, verify: ssl.SSLContext = NO_TLS, **options: Any) -> httpx2.AsyncClient:
    """A client with these options of httpx2, without proxies; with ``verify`` of a server that does speak TLS."""
    return httpx2.AsyncClient(trust_env=False, timeout=SECONDS, verify=verify, **options)
