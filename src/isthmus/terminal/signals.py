"""Signals while a front runs: handled in the event loop, and Ctrl-C as an ordinary exception."""

import asyncio
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager


class Interrupted(Exception):
    """The user pressed Ctrl-C during input.

    It is caught like any other exception, whereas a KeyboardInterrupt that leaves a task stops the whole event loop.
    """


@contextmanager
def signal_handlers(handlers: Mapping[signal.Signals, Callable[[], object]]) -> Generator[None]:
    """Call the handlers in the running loop meanwhile, and restore the previous handlers at the end.

    If the platform or the thread does not support such handlers, the signals keep their meaning.
    """
    loop = asyncio.get_running_loop()
    before: dict[signal.Signals, object] = {}
    for number, handler in handlers.items():
        previous = signal.getsignal(number)
        try:
            loop.add_signal_handler(number, handler)
        except (NotImplementedError, RuntimeError, ValueError):
            continue
        before[number] = previous
    try:
        yield
    finally:
        for number, previous in before.items():
            loop.remove_signal_handler(number)
            if callable(previous) or isinstance(previous, signal.Handlers):
                signal.signal(number, previous)
