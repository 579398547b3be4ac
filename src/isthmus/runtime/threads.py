"""Runs functions that may block for long, such as a keyring behind D-Bus, in a thread with a deadline.

The end of the program does not wait for the thread, unlike for threads of ``asyncio.to_thread``.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
Came = TypeVar("Came")


async def in_thread(function: Callable[[], T], seconds: float) -> T:
    """Run ``function`` in a thread, and return its result or raise its exception.

    Raises:
        TimeoutError: it takes longer than ``seconds``; it continues, and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(how: Callable[[Came], None], came: Came) -> None:
        def act() -> None:
            if not outcome.done():
                how(came)

        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(act)

    def run() -> None:
        try:
            result = function()
        except Exception as error:
            settle(outcome.set_exception, error)
        else:
            settle(outcome.set_result, result)

    threading.Thread(target=run, name="isthmus-blocking", daemon=True).start()
    async with asyncio.timeout(seconds):
        return await outcome
