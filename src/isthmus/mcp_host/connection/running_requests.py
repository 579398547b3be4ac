"""The requests to one server that are running now."""

import asyncio
import contextlib
from collections.abc import Callable, Generator

INTERVAL = 0.01
"""Interval in seconds at which it is checked whether requests still run."""


class RunningRequests:
    """The number of running requests; it is true if there are any."""

    def __init__(self) -> None:
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    @contextlib.contextmanager
    def one(self) -> Generator[None]:
        """Count one more request while the block runs."""
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    async def ended(self, seconds: float, *, unless: Callable[[], bool]) -> None:
        """Wait at most `seconds` until none is running; return at once if `unless` is true."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self and not unless():
                    await asyncio.sleep(INTERVAL)
