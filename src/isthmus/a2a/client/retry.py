"""Retry policy of a client, and sending a message until it has arrived.

Streams that break are resumed in :mod:`isthmus.a2a.client.streams`.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx2

from isthmus.a2a.client.answers import ConnectionLostError
from isthmus.record import record

T = TypeVar("T")
MAY_HAVE_ARRIVED = "The message may have arrived before: look at the session before you send it again."
"""End of an error after which the user should look before the same message is sent again."""


@record
class StreamRetryPolicy:
    """Retries of broken streams and lost messages. Times are in seconds."""

    attempts: int = 8
    """Maximum number of attempts in a row."""
    first_wait: float = 0.1
    """Wait before the first attempt; it doubles with each further one."""
    longest_wait: float = 5
    deadline: float = 60
    """Time after which a message or a question whose answer was lost is no longer repeated."""
    lively_seconds: float = 10.0
    """Time after which an open stream counts as a success, even if it sent nothing new."""
    rest_seconds: float = 2.0
    """Time that a stream may stay open after the work has ended, on servers that do not announce the stream's end."""
    first_poll_seconds: float = 0.5
    """Pause before a task is polled for the first time, on a server that does not stream; it grows with each poll."""
    longest_poll_seconds: float = 5.0

    def wait(self, attempt: int) -> float:
        """Return the wait before attempt number ``attempt`` (1, 2, ...)."""
        return min(self.first_wait * 2 ** (attempt - 1), self.longest_wait)


async def read_until_answered(ask: Callable[[], Awaitable[T]], retry_policy: StreamRetryPolicy) -> T:
    """Call ``ask``, which changes nothing on the server, until it is answered, and return its result.

    Raises:
        ConnectionLostError: the server did not answer in any attempt.
        TaskError: the server refuses.
        RemoteError: the server cannot be used.
    """
    return await _repeated(ask, retry_policy, lambda _: True)


async def send_until_arrived(
    send: Callable[[], Awaitable[T]], retry_policy: StreamRetryPolicy, *, is_taken_once: bool
) -> T:
    """Call ``send``, which sends the same message at each call, until it succeeds, and return its result.

    If the answer was lost, the message may have arrived. It is then repeated to a server that carries out a message
    only once (``is_taken_once``). To other servers it is repeated only if no connection was made.

    Raises:
        ConnectionLostError: the message did not arrive, or may not have arrived. The error says so if it may have.
        TaskError: the server refuses the message.
        RemoteError: the server cannot be used.
    """
    may_have_arrived = False

    def is_safe(error: ConnectionLostError) -> bool:
        nonlocal may_have_arrived
        was_connected = not isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
        may_have_arrived |= was_connected
        return is_taken_once or not was_connected

    try:
        return await _repeated(send, retry_policy, is_safe)
    except ConnectionLostError as error:
        if may_have_arrived:
            raise ConnectionLostError(f"{error}. {MAY_HAVE_ARRIVED}") from error
        raise


async def _repeated(
    ask: Callable[[], Awaitable[T]], retry_policy: StreamRetryPolicy, is_safe: Callable[[ConnectionLostError], bool]
) -> T:
    """Call ``ask`` until it succeeds, while ``is_safe`` lets it be repeated after an error and the policy does."""
    began = time.monotonic()
    for attempt in itertools.count(1):
        try:
            return await ask()
        except ConnectionLostError as error:
            pause = retry_policy.wait(attempt)
            is_late = time.monotonic() + pause - began > retry_policy.deadline
            if not is_safe(error) or is_late or attempt > retry_policy.attempts:
                raise
        await asyncio.sleep(pause)
    raise AssertionError("unreachable")
