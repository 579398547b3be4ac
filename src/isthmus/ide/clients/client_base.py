"""Common parts of the clients of both IDE protocols: listeners, background work, and errors for missing tools.

Protocols and connections are in the ``peer`` module of each protocol.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Final, TypeVar

from typing_extensions import override

from isthmus.ide.clients.ide_client import IdeClient, NotOfferedError
from isthmus.ide.editor import CodeExecution, Diagnostic, FileMentioned, Range
from isthmus.record import record
from isthmus.runtime.running_tasks import RunningTasks

T = TypeVar("T")


@record
class Deadlines:
    """Deadlines in seconds.

    ``first_context`` is the wait for the context that most companions send right after connecting. ``lost`` is the time
    that reviews outlive the connection. The delay ``retry_first`` doubles up to ``retry_last``. ``call`` is for calls
    that do not ask the user. ``poll`` is the interval of requests for the IDE's open files while there are listeners.
    ``written`` is the time that the view of an accepted review stays open until the file is written, so that the editor
    reads it. ``ping`` is the interval of liveness checks, and ``pong`` the maximum wait for the answer. The wait is
    long because an editor that is asking its user a question may not answer for a while.
    """

    connect: float = 5.0
    first_context: float = 0.5
    open_diff: float = 60.0
    close_diff: float = 5.0
    retry_first: float = 0.2
    retry_last: float = 5.0
    lost: float = 30.0
    call: float = 5.0
    poll: float = 2.0
    written: float = 3.0
    ping: float = 30.0
    pong: float = 60.0


DEADLINES: Final = Deadlines()


class ClientBase(IdeClient):
    """Base of the clients: listeners and background work. Optional methods raise :class:`NotOfferedError`."""

    def __init__(self, workspace: Path, environment: Mapping[str, str], deadlines: Deadlines) -> None:
        self._workspace = workspace
        self._environment = environment
        self._deadlines = deadlines
        self._connected = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        """Task that reconnects until it is cancelled; None before the first connection."""
        self._listeners: list[Callable[[], None]] = []
        self._mention_listeners: list[Callable[[FileMentioned], None]] = []
        self._tasks = RunningTasks()
        self.is_closed = False
        """Whether the client is closed and will not reconnect."""
        self.problem: str | None = None
        """Last problem in words; None if there was none."""

    @property
    @override
    def connected(self) -> bool:
        return self._connected.is_set()

    @property
    @override
    def ide_name(self) -> str:
        return "IDE"

    @override
    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        return _subscribed(self._listeners, callback)

    @override
    def on_mention(self, callback: Callable[[FileMentioned], None]) -> Callable[[], None]:
        return _subscribed(self._mention_listeners, callback)

    @override
    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        raise self._not_offered("show a file")

    @override
    async def close_file(self, path: str) -> None:
        raise self._not_offered("close a file")

    @override
    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        raise self._not_offered("report its diagnostics")

    @override
    async def is_dirty(self, path: str) -> bool | None:
        raise self._not_offered("report unsaved changes")

    @override
    async def save(self, path: str) -> None:
        raise self._not_offered("save a file")

    @override
    async def execute_code(self, code: str) -> CodeExecution:
        raise self._not_offered("run code")

    def _not_offered(self, what: str) -> NotOfferedError:
        return NotOfferedError(self.ide_name, f"its extension has no tool to {what}")

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def _mentioned(self, mentioned: FileMentioned) -> None:
        for listener in tuple(self._mention_listeners):
            listener(mentioned)

    async def _stop_following(self) -> None:
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.wait([self._follower])


async def within(wait: Coroutine[object, object, object], seconds: float) -> bool:
    """Return whether ``wait`` ended within ``seconds``; otherwise cancel it."""
    try:
        async with asyncio.timeout(seconds):
            await wait
    except TimeoutError:
        return False
    return True


def _subscribed(listeners: list[T], callback: T) -> Callable[[], None]:
    listeners.append(callback)

    def unsubscribe() -> None:
        with contextlib.suppress(ValueError):
            listeners.remove(callback)

    return unsubscribe
