"""Runs work on large values in one thread, while the event loop goes on.

Decoding a text of many megabytes holds the interpreter for tens of milliseconds at a stretch. So one piece of work runs
at a time: several threads would take turns among themselves, and leave none to the loop.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import ParamSpec, TypeVar

from isthmus.runtime.large_values import LARGE_BYTES

P = ParamSpec("P")
T = TypeVar("T")

RETURNED_BYTES = 1024 * 1024
"""Size in bytes from which memory goes back to the system as soon as it is freed; that costs more than keeping it."""
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h
_CHOSEN_BY_USER = ("MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


async def off_loop(size: int, function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return the result of a function that works on a value of ``size`` bytes; a large one is worked on in the thread.

    Raises what the function raises. If the caller is cancelled, the work ends nevertheless, and its result is dropped.
    """
    if size < LARGE_BYTES:
        return function(*args, **named)
    return await asyncio.get_running_loop().run_in_executor(_thread(), partial(function, *args, **named))


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="isthmus-large", initializer=return_large_blocks)


def return_large_blocks() -> None:
    """Let the C library return the memory of large values to the system as soon as they are freed, if it can.

    Once a value of up to 32 MB was freed, the C library of GNU gives such values a place among the small ones. Small
    values that stay behind them then keep the memory from the system.
    """
    if sys.platform != "linux" or any(name in os.environ for name in _CHOSEN_BY_USER):
        return
    import ctypes

    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries do not have it, or ignore it
    if set_option is not None:
        set_option(ctypes.c_int(_MMAP_THRESHOLD), ctypes.c_int(RETURNED_BYTES))
