"""Runs brief work that blocks, such as a look at a few files, in threads that are kept for it.

:func:`asyncio.to_thread` takes several times as long as such work: it takes four locks on the way there and back, and a
turn of the agent has half a dozen looks.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MAXIMUM_THREADS = 4
"""Maximum number of threads, which take turns anyway; more work than that waits."""


class _Threads:
    """Threads that are started when all others are at work, and that live as long as the process."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._under_way = 0
        self._started = 0

    def put(self, work: Callable[[], None]) -> None:
        """Let a thread do the work, which calls :meth:`done` at its end."""
        with self._lock:
            self._under_way += 1
            is_short = self._started < min(self._under_way, MAXIMUM_THREADS)
            self._started += is_short
        if is_short:
            threading.Thread(target=self._run, name="isthmus-brief", daemon=True).start()
        self._queue.put(work)

    def done(self) -> None:
        """Note that work has ended."""
        with self._lock:
            self._under_way -= 1

    def _run(self) -> None:
        while True:
            self._queue.get()()


_threads = _Threads()


def _begin_again() -> None:
    global _threads  # a forked process has no threads
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)


async def briefly(function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return the result of brief work that blocks, done in a thread.

    Raises what the function raises. If the caller is cancelled, the work ends nevertheless, and its result is dropped.
    """
    loop, threads = asyncio.get_running_loop(), _threads
    future: asyncio.Future[T] = loop.create_future()
    call = partial(copy_context().run, function, *args, **named)

    def work() -> None:
        try:
            outcome = partial(_succeed, future, call())
        except BaseException as error:  # of any kind: it is the caller's
            outcome = partial(_fail, future, error)
        threads.done()
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(outcome)

    threads.put(work)
    return await future


def _succeed(future: "asyncio.Future[Any]", result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
