"""Bounds how many servers start at the same time; one that hangs gives up its place after a while.

Twenty programs that start at once, each an interpreter, take longer than ten and then ten; launchers such as npx with
an empty cache do not come up at all.
"""

import asyncio
from collections.abc import Callable

PLACES = 10
LONGEST_SECONDS = 3.0
"""Maximum time in seconds for which a starting server keeps others waiting."""


class StartLimit:
    """A number of places."""

    def __init__(self, places: int = PLACES, longest: float = LONGEST_SECONDS) -> None:
        self._free = asyncio.Semaphore(places)
        self._longest = longest

    async def enter(self) -> Callable[[], None]:
        """Wait for a place. It is given up by a call of what is returned, which must be made, or after a while."""
        await self._free.acquire()
        is_held = True

        def leave() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                timer.cancel()
                self._free.release()

        timer = asyncio.get_running_loop().call_later(self._longest, leave)
        return leave
