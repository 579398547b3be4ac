"""HTTP clients of servers on this machine, without TLS.

They make no TLS context: loading all certificate authorities takes 20 ms of processor time.
"""

import ssl
from typing import Any

import httpx2

SECONDS = 60
"""Maximum seconds for a response on a busy machine."""
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""A context that trusts nobody; pass it as ``verify`` to requests without a client of this module."""


def plain_client(*, verify: ssl.SSLContext = NO_TLS, **options: Any) -> httpx2.AsyncClient:
    """Return a client with these options of httpx2, without proxies; pass ``verify`` for a server that uses TLS."""
    return httpx2.AsyncClient(trust_env=False, timeout=SECONDS, verify=verify, **options)
