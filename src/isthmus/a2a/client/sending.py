"""Sending a message until it has arrived: again, with the same id, where that cannot make it work twice.

Deliberately not here: streams that break later (:mod:`isthmus.a2a.client.streams`).
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx2

from isthmus.a2a.client.answers import ConnectionLostError
from isthmus.a2a.client.streams import StreamRetryPolicy

T = TypeVar("T")


async def arrived(send: Callable[[], Awaitable[T]], patience: StreamRetryPolicy, *, is_taken_once: bool) -> T:
    """Return what ``send`` returns, which sends the same message at each call.

    A message whose answer was lost may have been taken. It is sent again to a server that takes a message once
    (``is_taken_once``); to others only when it cannot have left, as no connection was made. ``patience`` bounds how
    often and for how long.

    Raises:
        ConnectionLostError: the message did not arrive, or may have.
        TaskError: the server refuses the message.
        RemoteError: the server cannot be used.
    """
    began = time.monotonic()
    for attempt in itertools.count(1):
        try:
            return await send()
        except ConnectionLostError as error:
            is_safe = is_taken_once or isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
            pause = patience.wait(attempt)
            is_late = time.monotonic() + pause - began > patience.deadline
            if not is_safe or is_late or attempt > patience.attempts:
                raise
        await asyncio.sleep(pause)
    raise AssertionError("unreachable")
