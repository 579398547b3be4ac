"""An HTTP client with a deadline for the request that ends a session, for which the SDK waits forever.

Deliberately not here: deadlines of all other requests, which their callers set.
"""

import asyncio
from typing import Any

import httpx2

LEAVE_SECONDS = 1.0
"""Maximum time in seconds to end a session; the server may be gone."""


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
