"""Requests to a connection, and its events. Any task sets them; the task that owns the connection handles them."""

import asyncio
import contextlib
import math
import time


class ConnectionSignals:
    """Flags, and an event that is set when a flag changes. The owner sets a flag to False when it has handled it."""

    def __init__(self) -> None:
        self.is_closing = False
        self.reconnect_requested = False
        """Whether a new connection was requested."""
        self.is_lost = False
        """Whether the server has stopped sending messages."""
        self.is_forgotten = False
        """Whether the server is lost because it does not know the session, or cannot be reached."""
        self.has_changed = False
        """Whether the server reported a change of its tools, prompts or resources that is not handled yet."""
        self.wants_listing = False
        """Whether a caller waits for the server to be listed."""
        self._woken = asyncio.Event()
        self._listed = asyncio.Event()
        self._listed.set()
        self._is_late = False
        """Whether a wait for the server to be listed took too long."""
        self._changed = asyncio.Event()
        self._may_change_until = -math.inf
        """Monotonic time until which the server may report a change that the last answered call made."""

    def begin(self) -> None:
        """Reset the events for a new connection."""
        self.is_lost = self.is_forgotten = self.has_changed = False
        self._changed.clear()
        self.note_listed()

    def close(self) -> None:
        """Request the end of the connection."""
        self.is_closing = True
        self.wake()

    def request_reconnect(self) -> None:
        """Request a new connection to the server."""
        self.reconnect_requested = True
        self.wake()

    def lose(self, *, is_forgotten: bool = False) -> None:
        """Note that the server is gone, or with it the session."""
        self.is_lost, self.is_forgotten = True, self.is_forgotten or is_forgotten
        self._changed.set()
        self.note_listed()  # it will not be listed: wake the waiting callers
        self.wake()

    def change(self) -> None:
        """Note that the server reported a change."""
        self.has_changed = True
        self._changed.set()
        self._listed.clear()
        self.wake()

    def list_now(self) -> None:
        """Request an immediate listing of the server."""
        self.wants_listing = True
        self._is_late = False
        self.change()

    def take_change(self) -> None:
        """Mark the change as handled; the server is about to be listed."""
        self.has_changed = self.wants_listing = False
        self._changed.clear()

    def note_listed(self) -> None:
        """Note that the server was listed, or cannot be."""
        self._is_late = False
        self._listed.set()

    def note_answer(self, seconds: float) -> None:
        """Note that a call was answered, after which the server may report a change for `seconds`."""
        self._may_change_until = time.monotonic() + seconds

    async def listed(self, seconds: float) -> None:
        """Wait at most `seconds` until a reported change is listed; do not wait if the last wait took too long.

        Before, wait for the report of a change that the last call made, as long as it may still come.
        """
        if (left := self._may_change_until - time.monotonic()) > 0 and not self.is_lost:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()
        if self._listed.is_set() or self._is_late:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._listed.wait()
        except TimeoutError:
            self._is_late = True

    def wake(self) -> None:
        """Wake the owner."""
        self._woken.set()

    @property
    def must_disconnect(self) -> bool:
        """Whether the current connection is no longer wanted."""
        return self.is_closing or self.reconnect_requested

    @property
    def is_ending(self) -> bool:
        """Whether the current connection has to end, because it is no longer wanted or was lost."""
        return self.must_disconnect or self.is_lost

    async def wait_for_wake(self, seconds: float | None = None) -> None:
        """Wait until a flag changes, at most `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    async def wait_until_unwanted(self) -> None:
        """Wait until the current connection is no longer wanted."""
        while not self.must_disconnect:
            await self.wait_for_wake()

    async def sleep_unless_urgent(self, seconds: float) -> None:
        """Wait for `seconds`; return early only if the connection has to end or a caller waits for a listing."""
        deadline = time.monotonic() + seconds
        while not (self.is_ending or self.wants_listing) and (left := deadline - time.monotonic()) > 0:
            await self.wait_for_wake(left)
