"""HTTP to an address that was checked after its name was resolved, so that a stranger's URL reaches nothing inside.

Deliberately not here: which addresses are allowed (:class:`isthmus.a2a.push.targets.PushRule` is one such rule).
"""

import asyncio
import socket
from collections.abc import Callable
from typing import TypeAlias

import httpx2

AddressPolicy: TypeAlias = Callable[[str, str], str | None]
"""A function of a host name and an address: the reason why nothing may be sent there, or None when it may."""


class AddressRefusedError(httpx2.ConnectError):
    """The address is not one that may be connected to."""


class CheckedTransport(httpx2.AsyncHTTPTransport):
    """Connects to an address that was checked, with the name in Host and TLS; never through a proxy."""

    def __init__(self, why_not: AddressPolicy) -> None:
        super().__init__(trust_env=False)
        self._why_not = why_not

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Resolve, check each address, and send to the first."""
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError(f"the name {host} cannot be resolved", request=request) from error
        addresses = [str(entry[4][0]) for entry in found]
        for address in addresses:
            if (kind := self._why_not(host, address)) is not None:
                raise AddressRefusedError(f"{host} leads to {kind}, which this server does not connect to")
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=addresses[0])
        return await super().handle_async_request(request)
