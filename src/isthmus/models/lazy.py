"""A thing that is costly to load: loaded once, in a thread, when it is first needed."""

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """What ``load`` returns; a load that failed is tried again by the next caller."""

    def __init__(self, load: Callable[[], T]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._loaded: tuple[T] | None = None

    @property
    def loaded(self) -> T | None:
        """The thing when it is there already."""
        return None if self._loaded is None else self._loaded[0]

    async def get(self) -> T:
        """The thing; the event loop goes on while it is loaded."""
        return self._loaded[0] if self._loaded is not None else await asyncio.to_thread(self._once)

    def _once(self) -> T:
        with self._lock:
            if self._loaded is None:
                self._loaded = (self._load(),)
            return self._loaded[0]
