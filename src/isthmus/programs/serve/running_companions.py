"""The reviews of the companions that run for this user on this machine, for the page of another server.

They are asked over their control channels, as by ``isthmus ide``. A companion checks that the user started the server.
Reviews of the server's own agent are left out, because the same question waits in its task.
"""

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Final

from isthmus.encoding.codec import JsonObject
from isthmus.files.locations import runtime_directory
from isthmus.ide.control import control_client
from isthmus.ide.control.control_client import ANSWER_SECONDS, RefusedError, RunningCompanion
from isthmus.ide.workspace.workspace_files import FileStamp
from isthmus.web.companions.reviews import CompanionRefusedError, NoSuchCompanionError

FRESH_SECONDS: Final = 0.5
"""Time in seconds in which one look serves all pages."""
APPEAR_SECONDS: Final = 1.0
"""Time in seconds between looks for companions that have started, while a page is open."""
WAIT_SECONDS: Final = 30.0
"""Time in seconds for which a companion is asked to wait for a change."""
AGAIN_SECONDS: Final = 2.0
"""Time in seconds after which a companion is looked at again that does not tell of its changes."""
LOOK_SECONDS: Final = 2.0
"""Maximum wait in seconds for a companion to say what waits; one that does not answer is left out."""


class RunningCompanions:
    """The running companions, as :class:`isthmus.web.companions.reviews.Companions`; ``folder`` has their files."""

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

    async def changes(self) -> AsyncGenerator[None]:
        """Yield at once, when a companion says that something changed, and when one starts or ends."""
        news = asyncio.Event()
        news.set()
        followed: dict[int, asyncio.Task[None]] = {}
        folder, stamp = str(self._folder or runtime_directory()), None
        try:
            while True:
                now = FileStamp.of(folder)  # another one when a companion's file came or went
                if now != stamp or any(task.done() for task in followed.values()):
                    stamp = now
                    running = await asyncio.to_thread(control_client.running, self._folder)
                    await _follow_all(running, followed, news)
                if news.is_set():
                    news.clear()
                    self._seen_at = float("-inf")
                    yield
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(APPEAR_SECONDS):
                        await news.wait()
        finally:
            await _follow_all([], followed, news)

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


async def _follow_all(
    running: Sequence[RunningCompanion], followed: "dict[int, asyncio.Task[None]]", news: asyncio.Event
) -> None:
    """Follow the running companions, each by a task, and no others."""
    wanted = {companion.pid: companion for companion in running}
    ended = {pid: followed.pop(pid) for pid, task in [*followed.items()] if pid not in wanted or task.done()}
    for task in ended.values():
        task.cancel()
    await asyncio.gather(*ended.values(), return_exceptions=True)
    added = [companion for pid, companion in wanted.items() if pid not in followed]
    for companion in added:
        followed[companion.pid] = asyncio.create_task(_follow(companion, news))
    if ended or added:
        news.set()


async def _follow(companion: RunningCompanion, news: asyncio.Event) -> None:
    """Set ``news`` after each change at a companion, until it cannot be asked."""
    count = -1
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_unix_connection(companion.socket)
    except (OSError, TimeoutError):
        return
    try:
        while True:
            request = {"command": "changes", "after": count, "wait": WAIT_SECONDS, "token": companion.token}
            writer.write(json.dumps(request).encode() + b"\n")
            async with asyncio.timeout(WAIT_SECONDS + ANSWER_SECONDS):
                answer = json.loads(await reader.readline())
            found = answer["result"]["count"] if answer.get("ok") is True else None
            if found != count:
                count = found if isinstance(found, int) else count
                news.set()
            if found is None:  # a companion of another version
                await asyncio.sleep(AGAIN_SECONDS)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, TimeoutError):
        return
    finally:
        writer.close()


def _waiting_at(companion: RunningCompanion) -> JsonObject | None:
    """Return what waits at a companion; None if it does not answer in time, or is of another version. Blocks."""
    try:
        found = control_client.ask_within(LOOK_SECONDS, companion, "waiting", {})
    except RefusedError:
        return None
    reviews = [review for review in found["reviews"] if review.get("pid") != os.getpid()]
    return {**found, "id": str(companion.pid), "reviews": reviews}
