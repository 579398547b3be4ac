"""Reads the bodies of requests: up to a size, in a time, and not more large ones at once than there is room for.

A small body arrives with its head, and costs no timer. The connection of a refused request stays open: if it were
closed while the client still writes, the answer would be lost.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.server.http.bytes_in_flight import BytesInFlight, NoRoomError, Room
from isthmus.a2a.server.http.first_step import FirstStep
from isthmus.a2a.server.http.http_request import HttpRequest
from isthmus.a2a.server.users.auth import Refusal
from isthmus.runtime.large_values import LARGE_BYTES

_ROOM_KEY = "isthmus.room"
"""Key in the ASGI scope of a request of the room that its body has."""
_WITHOUT_BODY = ("GET", "HEAD", "DELETE")
"""Methods whose requests have no body, or a small one, unless they state its length."""
_RETRY_SECONDS = 2
"""Time in seconds after which a client is told to send a request again for which there was no room."""


class RequestBodies:
    """Reader of the bodies of one server's requests."""

    def __init__(self, options: ServerOptions) -> None:
        self._deadline = options.body_deadline
        self.in_flight = BytesInFlight(options.bytes_in_flight, options.user_bytes_in_flight)

    async def read(self, request: HttpRequest, limit: int, user: str = "") -> bytes | Refusal:
        """Return the body of a request, or why it is refused.

        A large one has room until :func:`free_room`, which the caller calls in any case.
        """
        stated = request.headers.get("content-length", "")
        size = int(stated) if stated.isdecimal() else None
        if size is None and request.method in _WITHOUT_BODY:
            size, limit = 0, min(limit, LARGE_BYTES)
        too_large = Refusal(413, f"the request is larger than {limit} bytes", {})
        if size is not None and size > limit:
            return too_large
        try:
            if limit < LARGE_BYTES or (size is not None and size < LARGE_BYTES):
                body = await self._read_small(request, limit)
            else:
                body = await self._read_large(request, limit, user, size)
        except TimeoutError:
            return Refusal(408, f"the request did not arrive within {self._deadline:g} s", {"Connection": "close"})
        except NoRoomError as error:
            return Refusal(429 if error.is_of_user else 503, str(error), {"Retry-After": str(_RETRY_SECONDS)})
        return too_large if body is None else body

    async def _read_small(self, request: HttpRequest, limit: int) -> bytes | None:
        first = FirstStep(_read(request, limit))
        if first.is_done:  # small bodies arrive with the head; a deadline would cost more than reading them
            return first.result
        async with asyncio.timeout(self._deadline):
            return await first.rest()

    async def _read_large(self, request: HttpRequest, limit: int, user: str, size: int | None) -> bytes | None:
        """Read a body that is large, or whose size is not stated; wait for room before more than a little is read."""
        loop = asyncio.get_running_loop()
        if size is not None:
            await self._take(request, user, size)
        body = bytearray()
        async with asyncio.timeout(self._deadline) as deadline:
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    return None
                if len(body) >= LARGE_BYTES and _ROOM_KEY not in request.scope:
                    deadline.reschedule(None)
                    await self._take(request, user, limit)
                    deadline.reschedule(loop.time() + self._deadline)
        return bytes(body)

    async def _take(self, request: HttpRequest, user: str, size: int) -> None:
        request.scope[_ROOM_KEY] = await self.in_flight.take(user, size, self._deadline)


def free_room(scope: Mapping[str, Any]) -> None:
    """Give the room of a request's body back: nothing of it is held any more but what its task needs."""
    room: Room | None = scope.get(_ROOM_KEY)
    if room is not None:
        room.release()


def is_large(scope: Mapping[str, Any]) -> bool:
    """Return whether the body of a request was large."""
    return _ROOM_KEY in scope


async def _read(request: HttpRequest, limit: int) -> bytes | None:
    """Return the body of a request, None when it is larger than ``limit`` bytes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            return None
    return bytes(body)
