"""Messages of other components to the user of the interactive front, from any thread, at any time.

The front shows them when they do not interrupt the user.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeAlias

from isthmus.record import record


@record
class Notice:
    """Information, such as a file that cannot be used; ``text`` is one line."""

    text: str


@record
class ShownInEditor:
    """The question about a call is shown in an editor, too; ``editor`` is its name."""

    tool_call_id: str
    editor: str


Announcement: TypeAlias = Notice | ShownInEditor


class Announcements:
    """Passes announcements to the front; those that come before it begins are queued."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Announcement] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._show: Callable[[Announcement], None] | None = None

    def say(self, announcement: Announcement) -> None:
        """Announce, from any thread; it is shown at the next turn of the event loop."""
        with self._lock:
            self._waiting.append(announcement)
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._hand_over)

    def begin(self, show: Callable[[Announcement], None]) -> None:
        """Call ``show`` in the running event loop with each announcement from now on."""
        with self._lock:
            self._loop, self._show = asyncio.get_running_loop(), show
        self._hand_over()

    def take(self) -> list[Announcement]:
        """Return the announcements that no front has shown, and forget them."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        return waiting

    def end(self) -> None:
        """Stop showing announcements."""
        with self._lock:
            self._loop = self._show = None

    def _hand_over(self) -> None:
        with self._lock:
            show = self._show
        if show is not None:
            for announcement in self.take():
                show(announcement)
