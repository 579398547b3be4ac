"""HTTP to an address that was checked after its name was resolved: a stranger's URL reaches no internal service.

The caller's rule decides which addresses are allowed; :class:`isthmus.a2a.push.targets.PushRule` is one.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import TypeAlias

import httpx2

from isthmus.network.client_tls import client_tls

AddressPolicy: TypeAlias = Callable[[str, str], str | None]
"""Function of a host name and an address that returns why nothing may be sent there, or None if it may."""


class AddressRefusedError(httpx2.ConnectError):
    """The rule forbids a connection to this address."""


class CheckedTransport(httpx2.AsyncHTTPTransport):
    """Connects to a checked address, with the name in Host and TLS; never through a proxy."""

    def __init__(self, policy: AddressPolicy) -> None:
        super().__init__(verify=client_tls(), trust_env=False)
        self._policy = policy

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Resolve the name, check each of its addresses, and send to the first."""
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError(f"the name {host} cannot be resolved", request=request) from error
        addresses = [str(entry[4][0]) for entry in found]
        for address in addresses:
            if (kind := self._policy(host, address)) is not None:
                raise AddressRefusedError(f"{host} leads to {kind}, which this server does not connect to")
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=addresses[0])
        return await super().handle_async_request(request)
