"""An HTTP client that does not wait for ever for a server to take leave, which the SDK does at the end of a session.

Deliberately not here: deadlines of everything else, which those have who ask.
"""

import asyncio
from typing import Any

import httpx2

LEAVE_SECONDS = 1.0
"""How long a server may take to be told that its session is not wanted any more; it may be gone."""


class BoundedLeaving(httpx2.AsyncClient):
    """Gives the request that ends a session a deadline; it has none otherwise."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send it.

        Raises:
            httpx2.ReadTimeout: a request to end a session was not answered in time.
        """
        if request.method != "DELETE":
            return await super().send(request, **options)
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                response = await super().send(request, **options)
                await response.aread()
                return response
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no answer within {LEAVE_SECONDS:g} s", request=request) from error
