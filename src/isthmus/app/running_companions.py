"""The reviews of the companions that run for this user on this machine, for the page of another server.

They are asked over their control channels, as by ``isthmus ide``. A companion checks that the user started the server.
Reviews of the server's own agent are left out, because the same question waits in its task.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from isthmus.encoding.codec import JsonObject
from isthmus.ide.control import control_client
from isthmus.ide.control.control_client import ANSWER_SECONDS, RefusedError, RunningCompanion
from isthmus.web.reviews import CompanionRefusedError, NoSuchCompanionError

FRESH_SECONDS: Final = 0.5
"""Time in seconds in which one look serves all pages."""
LOOK_SECONDS: Final = 2.0
"""Maximum wait in seconds for a companion to say what waits; one that does not answer is left out."""


class RunningCompanions:
    """The running companions, as :class:`isthmus.web.reviews.Companions`; ``folder`` has their files."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._looking = asyncio.Lock()
        self._seen: list[JsonObject] = []
        self._seen_at = float("-inf")

    async def waiting(self) -> list[JsonObject]:
        """Return what waits at each companion."""
        async with self._looking:
            if time.monotonic() - self._seen_at >= FRESH_SECONDS:
                running = await asyncio.to_thread(control_client.running, self._folder)
                found = await asyncio.gather(*(asyncio.to_thread(_waiting_at, companion) for companion in running))
                self._seen = [companion for companion in found if companion is not None]
                self._seen_at = time.monotonic()
            return self._seen

    async def ask(self, companion: str, command: str, arguments: Mapping[str, object]) -> JsonObject:
        """Return the answer of a companion, named by its process id, to a command of a page.

        Raises:
            NoSuchCompanionError: it does not run any more.
            CompanionRefusedError: it refuses, or does not answer.
        """
        running = await asyncio.to_thread(control_client.running, self._folder)
        found = next((other for other in running if str(other.pid) == companion), None)
        if found is None:
            raise NoSuchCompanionError("its companion has ended; the agent asks in its own terminal")
        try:
            answer = await asyncio.to_thread(control_client.ask_within, ANSWER_SECONDS, found, command, arguments)
        except RefusedError as error:
            raise CompanionRefusedError(str(error)) from error
        self._seen_at = float("-inf")  # what waits may have changed by this
        return answer


def _waiting_at(companion: RunningCompanion) -> JsonObject | None:
    """Return what waits at a companion; None if it does not answer in time, or is of another version. Blocks."""
    try:
        found = control_client.ask_within(LOOK_SECONDS, companion, "waiting", {})
    except RefusedError:
        return None
    reviews = [review for review in found["reviews"] if review.get("pid") != os.getpid()]
    return {**found, "id": str(companion.pid), "reviews": reviews}
