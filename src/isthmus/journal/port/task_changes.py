"""Notices of tasks whose state or questions changed, for those in this process who watch. They cost nothing otherwise.

A notice says that a task is to be looked at again, and no more: what it is now is in the journal. Other processes that
write to the same journal are not noticed here.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.events import AgentEvent, StateChange

if TYPE_CHECKING:
    import asyncio

Notify: TypeAlias = Callable[[str], None]
"""Function that takes the id of a changed task; called on the event loop after the commit, and must not fail."""


class TaskChanges:
    """The watchers of one journal."""

    def __init__(self) -> None:
        self._watchers: tuple[Notify, ...] = ()

    @property
    def is_watched(self) -> bool:
        """Whether there is a watcher."""
        return bool(self._watchers)

    def watch(self, notify: Notify) -> Callable[[], None]:
        """Call ``notify`` for each change from now on, until the returned function is called."""
        self._watchers = (*self._watchers, notify)

        def end() -> None:
            self._watchers = tuple(watcher for watcher in self._watchers if watcher is not notify)

        return end

    def follow(self, task_id: str, written: "asyncio.Future[Any]", events: Sequence[AgentEvent] | None = None) -> None:
        """Notify the watchers once a write is done, unless it only adds ``events`` that do not change the state."""
        if not self._watchers or (events is not None and not any(isinstance(event, StateChange) for event in events)):
            return
        written.add_done_callback(lambda done: self._notify(task_id, done))

    def _notify(self, task_id: str, written: "asyncio.Future[Any]") -> None:
        if written.cancelled() or written.exception() is not None:
            return
        for notify in self._watchers:
            notify(task_id)
