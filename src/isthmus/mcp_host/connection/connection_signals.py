"""Requests to a connection, and events of it: set from anywhere, handled by the task that owns it."""

import asyncio
import contextlib
import time


class ConnectionSignals:
    """Flags, and a bell that rings when one is set. Taking one up is to set it to False."""

    def __init__(self) -> None:
        self.is_closing = False
        self.reconnect_requested = False
        """Somebody wants it connected anew."""
        self.is_lost = False
        """The server sends no more."""
        self.has_changed = False
        """The server says that what it offers changed."""
        self.wants_listing = False
        """Somebody waits for what it offers now."""
        self._bell = asyncio.Event()
        self._listed = asyncio.Event()
        self._listed.set()
        self._is_late = False
        """Somebody waited in vain for what changed to be listed."""

    def begin(self) -> None:
        """Reset the events for a new connection."""
        self.is_lost = self.has_changed = False
        self.note_listed()

    def close(self) -> None:
        """Request that the connection is closed."""
        self.is_closing = True
        self.wake()

    def request_reconnect(self) -> None:
        """Request that the connection is made again."""
        self.reconnect_requested = True
        self.wake()

    def lose(self) -> None:
        """Note that the server is gone."""
        self.is_lost = True
        self.note_listed()  # whoever waits for that waits in vain
        self.wake()

    def change(self) -> None:
        """Note that the server's offer changed."""
        self.has_changed = True
        self._listed.clear()
        self.wake()

    def list_now(self) -> None:
        """Somebody wants to know what the server offers now."""
        self.wants_listing = True
        self._is_late = False
        self.change()

    def take_change(self) -> None:
        """Take the change, because the server is about to be listed."""
        self.has_changed = self.wants_listing = False

    def note_listed(self) -> None:
        """Note that the server was listed, or cannot be."""
        self._is_late = False
        self._listed.set()

    async def listed(self, seconds: float) -> None:
        """Wait until what changed is listed, and no longer than so many seconds; not again for what is late."""
        if self._listed.is_set() or self._is_late:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._listed.wait()
        except TimeoutError:
            self._is_late = True

    def wake(self) -> None:
        """Wake the owner."""
        self._bell.set()

    @property
    def must_disconnect(self) -> bool:
        """The connection as it is now is not wanted."""
        return self.is_closing or self.reconnect_requested

    @property
    def is_ending(self) -> bool:
        """The connection as it is now has to end."""
        return self.must_disconnect or self.is_lost

    async def wait_for_wake(self, seconds: float | None = None) -> None:
        """Wait for the bell, and no longer than so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        self._bell.clear()

    async def wait_until_unwanted(self) -> None:
        """Wait until the connection as it is now is not wanted."""
        while not self.must_disconnect:
            await self.wait_for_wake()

    async def sleep_unless_urgent(self, seconds: float) -> None:
        """Wait so long, however often the bell rings; not when the connection has to end, or somebody waits."""
        deadline = time.monotonic() + seconds
        while not (self.is_ending or self.wants_listing) and (left := deadline - time.monotonic()) > 0:
            await self.wait_for_wake(left)
