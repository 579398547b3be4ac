"""A value that is expensive to load: loaded once, in a thread, when it is first needed."""

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """The result of ``make``, called at the first use; after a failure the next caller tries again."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._loaded: tuple[T] | None = None

    async def get(self) -> T:
        """Return the value, loading it in a thread if needed."""
        return self._loaded[0] if self._loaded is not None else await asyncio.to_thread(self.load)

    def load(self) -> T:
        """Return the value, blocking while it is loaded. May be called from any thread."""
        with self._lock:
            if self._loaded is None:
                self._loaded = (self._make(),)
            return self._loaded[0]
