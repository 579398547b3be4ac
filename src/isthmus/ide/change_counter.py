"""Counts the changes of a companion that pages show, so that they can wait for the next one. No I/O."""

import asyncio
from contextlib import suppress


class ChangeCounter:
    """Number of changes so far. Used on one event loop."""

    def __init__(self) -> None:
        self.number = 0
        """Number of the newest change."""
        self._changed = asyncio.Event()

    def add(self) -> None:
        """Count a change."""
        self.number += 1
        self._changed.set()

    async def wait(self, number: int, seconds: float) -> int:
        """Wait until the number is another one, at most ``seconds``; return the number."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.number == number:
                    self._changed.clear()
                    await self._changed.wait()
        return self.number
