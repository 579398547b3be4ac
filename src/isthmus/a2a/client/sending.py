"""Repeated sending of a message, with the same id, where it cannot be carried out twice.

Streams that break later are resumed in :mod:`isthmus.a2a.client.streams`.
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


async def send_until_arrived(
    send: Callable[[], Awaitable[T]], retry_policy: StreamRetryPolicy, *, is_taken_once: bool
) -> T:
    """Call ``send``, which sends the same message at each call, until it succeeds, and return its result.

    If the answer was lost, the message may have arrived. It is then repeated to a server that carries out a message
    only once (``is_taken_once``). To other servers it is repeated only if no connection was made.

    Raises:
        ConnectionLostError: the message did not arrive, or may not have arrived.
        TaskError: the server refuses the message.
        RemoteError: the server cannot be used.
    """
    began = time.monotonic()
    for attempt in itertools.count(1):
        try:
            return await send()
        except ConnectionLostError as error:
            is_safe = is_taken_once or isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
            pause = retry_policy.wait(attempt)
            is_late = time.monotonic() + pause - began > retry_policy.deadline
            if not is_safe or is_late or attempt > retry_policy.attempts:
                raise
        await asyncio.sleep(pause)
    raise AssertionError("unreachable")
