"""News of reviews: that one was opened, shown or ended, for those who wait for it."""

import asyncio
from collections.abc import Callable


class ReviewChanges:
    """Changes of the reviews, of which waiters are told."""

    def __init__(self) -> None:
        self._condition = asyncio.Condition()

    async def announce(self) -> None:
        """Tell all waiters that something has changed."""
        async with self._condition:
            self._condition.notify_all()

    async def wait_for(self, is_met: Callable[[], bool], seconds: float) -> bool:
        """Wait at most ``seconds`` until a change has met a condition; return whether it is met."""
        async with self._condition:
            try:
                async with asyncio.timeout(seconds):
                    await self._condition.wait_for(is_met)
            except TimeoutError:
                return False
        return True
