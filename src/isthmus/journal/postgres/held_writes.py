"""The writes of a journal that wait for locks of another process, while those that need no such lock go on.

Writes of one task keep their order: what comes after a write that waits, waits behind it. Not here: the transactions.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Generic, TypeVar

W = TypeVar("W")

PAUSES = (0.01, 0.05, 0.25, 1.0)
"""Times in seconds between attempts; the last one is used again and again."""


@dataclass(slots=True)
class HeldWrites(Generic[W]):
    """Writes and their tasks, the one first that is tried next. Times are monotonic, in seconds."""

    _held: list[tuple[W, frozenset[str]]] = field(default_factory=list[tuple[W, frozenset[str]]])
    _tasks: Counter[str] = field(default_factory=Counter[str])
    """Number of these writes by task: each write that is queued meanwhile asks for its own."""
    _attempts: int = 0
    """Number of attempts since a lock was had."""
    _next_at: float | None = None

    def __len__(self) -> int:
        return len(self._held)

    def wait_seconds(self, now: float) -> float | None:
        """Return in how many seconds the next attempt is due; None if no write waits."""
        if not self._held or self._next_at is None:
            return None
        return max(0.0, self._next_at - now)

    def take_due(self, now: float) -> W | None:
        """Return and remove the write that is tried now, if it is time."""
        if self.wait_seconds(now) != 0.0:
            return None
        write, tasks = self._held.pop(0)
        self._tasks -= Counter(tasks)
        return write

    def is_behind(self, tasks: Collection[str]) -> bool:
        """Return whether a write of these tasks has to wait behind another one."""
        return any(task in self._tasks for task in tasks)

    def add(self, write: W, tasks: Collection[str]) -> None:
        """Let a write wait behind those that wait already."""
        self._held.append((write, frozenset(tasks)))
        self._tasks.update(frozenset(tasks))

    def add_locked(self, write: W, tasks: Collection[str], now: float) -> None:
        """Let a write wait whose lock could not be had; others are tried before it, but for those behind it."""
        before: list[tuple[W, frozenset[str]]] = []
        behind: list[tuple[W, frozenset[str]]] = []
        reserved = set(tasks)
        for one in self._held:
            if reserved.isdisjoint(one[1]):
                before.append(one)
            else:
                behind.append(one)
                reserved.update(one[1])
        self._held = [*before, (write, frozenset(tasks)), *behind]
        self._tasks.update(frozenset(tasks))
        self._next_at = now + PAUSES[min(self._attempts, len(PAUSES) - 1)]
        self._attempts += 1

    def note_lock(self, now: float) -> None:
        """Note that a write that waited has had its lock: the next one is tried at once."""
        self._attempts = 0
        self._next_at = now

    def remove(self, chosen: Callable[[W], bool]) -> list[W]:
        """Return and remove the writes that a function chooses."""
        removed = [write for write, _ in self._held if chosen(write)]
        self._held = [one for one in self._held if not chosen(one[0])]
        self._tasks = Counter(task for _, tasks in self._held for task in tasks)
        return removed
