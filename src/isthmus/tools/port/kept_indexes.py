"""Indexes of files that are kept between calls, and brought up to date in a thread of their own.

The end of the program does not wait for these threads: a folder of a network that hangs keeps nobody.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future

from isthmus.tools.port.file_index import FileIndex

MAXIMUM_INDEXES = 4
"""Maximum number of indexes that are kept; the one that was not asked for longest is given up."""
MAXIMUM_KEPT_BYTES = 96 * 1024 * 1024
"""Maximum size of all kept indexes, but for the one that was asked last."""


class KeptIndex:
    """An index with the thread that brings it up to date."""

    def __init__(self, index: FileIndex) -> None:
        self.index = index
        self._lock = threading.Lock()
        self._next: Future[None] | None = None
        self._is_running = False
        self._ended_at: float | None = None
        self._is_finding_large = False

    def refreshed(self) -> "Future[None]":
        """Return a future of a refresh that begins from now on."""
        with self._lock:
            if self._next is None:
                self._next = Future()
            future = self._next
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="isthmus-files", daemon=True).start()
        return future

    def find_large_soon(self) -> None:
        """Find the large files in a thread, so that the next search knows them."""
        with self._lock:
            if self._is_finding_large:
                return
            self._is_finding_large = True
        threading.Thread(target=self._find_large, name="isthmus-files", daemon=True).start()

    def _find_large(self) -> None:
        try:
            self.index.find_large()
        finally:
            self._is_finding_large = False

    def is_newer_than(self, seconds: float) -> bool:
        """Return whether the last refresh ended less than so many seconds ago."""
        return self._ended_at is not None and time.monotonic() - self._ended_at < seconds

    def _run(self) -> None:
        while True:
            with self._lock:
                future, self._next = self._next, None
                if future is None:
                    self._is_running = False
                    return
            try:
                self.index.refresh()
            except Exception as error:
                future.set_exception(error)
            else:
                self._ended_at = time.monotonic()
                future.set_result(None)


class KeptIndexes:
    """The indexes of a process, by what they are of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, KeptIndex] = OrderedDict()

    def of(self, key: Hashable, make: Callable[[], FileIndex]) -> KeptIndex:
        """Return the index of `key`, made if there is none yet."""
        with self._lock:
            if (kept := self._kept.get(key)) is None:
                kept = self._kept[key] = KeptIndex(make())
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and (len(self._kept) > MAXIMUM_INDEXES or self._size() > MAXIMUM_KEPT_BYTES):
                self._kept.popitem(last=False)
            return kept

    def _size(self) -> int:
        return sum(kept.index.size for kept in self._kept.values())
