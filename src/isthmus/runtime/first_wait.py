"""Tells when a piece of work waits for the first time, without a task of its own and without the event loop.

Most work that could wait does not. A callback of the loop that is cancelled again would cost each such piece a system
call and a turn of the loop.
"""

from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


@coroutine
def on_first_wait(work: Coroutine[Any, Any, T], waits: Callable[[], object]) -> Generator[Any, Any, T]:
    """Await ``work`` and return its result; call ``waits`` once, when it waits for the first time.

    Raises what the work raises. A cancellation reaches the work, as if it were awaited itself.
    """
    try:
        awaited = work.send(None)
        waits()
        while True:
            try:
                given = yield awaited
            except BaseException as error:  # also the cancellation is the work's
                awaited = work.throw(error)
            else:
                awaited = work.send(given)
    except StopIteration as ended:
        result: T = ended.value
        return result
