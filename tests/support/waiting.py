"""Waiting for a condition with a deadline: the only way a test waits.

Tests never sleep for a guessed time. They poll a condition, and a deadline that passes is a failure that names
the condition and the last value. A condition may also be written with `assert`: AssertionError counts as
"not yet"; every other exception is passed on at once.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

SHORTEST, LONGEST = 0.01, 0.1
"""Shortest and longest time in seconds between two checks of a condition."""
LATE = 0.1
"""Share of the time waited so far after which the next check comes: what takes long is looked at less often.

Many checks ask another program, which would spend its time on answers.
"""


def eventually(condition: Callable[[], T], seconds: float = 30, *, what: str = "") -> T:
    """Call `condition` until it returns something true, and return that.

    After `seconds` raise an AssertionError with `what` and the last value. Not for use inside an event loop:
    use `eventually_async` there.
    """
    begun = time.monotonic()
    deadline = begun + seconds
    while True:
        try:
            value = condition()
        except AssertionError as error:
            if time.monotonic() >= deadline:
                raise AssertionError(_deadline_passed(condition, seconds, what, str(error))) from error
        else:
            if value:
                return value
            if time.monotonic() >= deadline:
                raise AssertionError(_deadline_passed(condition, seconds, what, repr(value)))
        time.sleep(_pause(begun))  # delay: pause between two looks, below the deadline


async def eventually_async(condition: Callable[[], T | Awaitable[T]], seconds: float = 30, *, what: str = "") -> T:
    """Do the same as `eventually` in a running event loop. `condition` may return a value or an awaitable.

    An awaitable that never ends is cut off at the deadline as well.
    """
    begun = time.monotonic()
    deadline = begun + seconds
    while True:
        try:
            value = await _settled(condition(), deadline - time.monotonic())
        except AssertionError as error:
            if time.monotonic() >= deadline:
                raise AssertionError(_deadline_passed(condition, seconds, what, str(error))) from error
        except _CutOffError as error:
            raise AssertionError(_deadline_passed(condition, seconds, what, "no answer from the condition")) from error
        else:
            if value:
                return value
            if time.monotonic() >= deadline:
                raise AssertionError(_deadline_passed(condition, seconds, what, repr(value)))
        await asyncio.sleep(_pause(begun))  # delay: pause between two looks, below the deadline


def _pause(begun: float) -> float:
    return min(LONGEST, max(SHORTEST, (time.monotonic() - begun) * LATE))


class _CutOffError(Exception):
    """The awaitable of a condition was still running at the deadline."""


async def _settled(value: T | Awaitable[T], seconds: float) -> T:
    if not inspect.isawaitable(value):
        return value
    running = asyncio.ensure_future(value)
    try:
        # Not asyncio.timeout: a TimeoutError that the condition itself raises must stay one.
        done, _ = await asyncio.wait({running}, timeout=max(seconds, SHORTEST))
        if not done:
            raise _CutOffError
        return running.result()
    finally:
        if not running.done():
            running.cancel()
            await asyncio.wait({running})


def _deadline_passed(condition: Callable[[], object], seconds: float, what: str, last: str) -> str:
    name = what or getattr(condition, "__qualname__", repr(condition))
    return f"not within {seconds:g} s: {name}; last seen: {last}"
