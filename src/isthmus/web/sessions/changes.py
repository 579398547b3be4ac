"""The stream ``/ui/api/changes``: a line for each task whose state or questions, and session whose record changed.

A page lists the tasks when it opens, then waits for lines; it asks A2A for what a line names. A page costs nothing
while nothing changes. Changes in this process come as notices of the journal. Changes of other processes are found by a
look at the journal every two seconds, while a page is open and only if it was written.
"""

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from isthmus.client import TaskQuery
from isthmus.encoding.event_stream import comment, event_frame
from isthmus.encoding.json_text import encode
from isthmus.errors import IsthmusError, Unavailable
from isthmus.journal.port.base import Journal
from isthmus.journal.port.task_rows import TaskRow

GATHER_SECONDS = 0.05
"""Time in seconds for which changes are gathered before they are read and sent."""
LOOK_SECONDS = 2.0
"""Time in seconds between looks for changes that other processes made."""
OVERLAP_SECONDS = 2.0
"""Time in seconds before the last known change from which a look lists tasks: clocks of processes differ a little."""
MAXIMUM_LISTED = 100
"""Maximum number of tasks in one look, and of lines that wait for a slow reader."""
MAXIMUM_KNOWN = 1000
"""Maximum number of tasks of one user whose last sent state is remembered."""
MAXIMUM_STREAMS = 32
"""Maximum number of streams of one user at a time."""
ALL = event_frame(encode({"all": True}))
"""Line that stands for more changes than are listed: the page lists the tasks again."""

_Shown: TypeAlias = tuple[str, tuple[str, ...]]
_Told: TypeAlias = tuple[str, bytes]
"""Name of the task or session that a line is about, and the line; a later line of it replaces one not sent yet."""
log = logging.getLogger(__name__)


class TooManyStreamsError(IsthmusError):
    """Raised when a user has the maximum number of streams open."""


@dataclass(slots=True, eq=False)
class _Reader:
    """One open stream: the lines that it has not been sent yet, the last one of each task and session."""

    changed: dict[str, bytes] = field(default_factory=dict[str, bytes])
    has_lost: bool = False
    is_over: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, lines: Iterable[_Told]) -> None:
        for about, line in lines:
            self.changed.pop(about, None)
            self.changed[about] = line
            self.news.set()
        if len(self.changed) > MAXIMUM_LISTED:
            self.changed.clear()
            self.has_lost = True

    def end(self) -> None:
        self.is_over = True
        self.news.set()

    def take(self) -> list[bytes]:
        self.news.clear()
        frames = [ALL] if self.has_lost else []
        frames += self.changed.values()
        self.changed, self.has_lost = {}, False
        return frames


@dataclass(slots=True)
class _User:
    """The open streams of one user, with what was sent to them; ``since`` is the time of the last change sent."""

    since: float
    readers: set[_Reader] = field(default_factory=set[_Reader])
    sent: OrderedDict[str, _Shown] = field(default_factory=OrderedDict[str, _Shown])

    def notify(self, rows: Iterable[TaskRow], *, is_certain: bool) -> None:
        """Put changed rows to all readers; without ``is_certain`` only those that differ from what was sent last."""
        news: list[_Told] = []
        for row in rows:
            shown = (str(row.state), tuple(call.tool_call_id for call in row.pending))
            if self._is_new(row.task_id, shown, row.updated_at) or is_certain:
                news.append((row.task_id, _line(row)))
        self._put(news)

    def notify_sessions(self, sessions: Iterable[tuple[str, float]]) -> None:
        """Put sessions whose records changed, each with the time, to all readers; not those that were sent already."""
        news = (_session_line(context_id, changed) for context_id, changed in sessions)
        self._put([told for told in news if self._is_new(told[0], (told[1].decode(), ()), 0)])

    def _is_new(self, about: str, shown: _Shown, changed: float) -> bool:
        self.since = max(self.since, changed)
        is_new = self.sent.get(about) != shown
        self.sent[about] = shown
        self.sent.move_to_end(about)
        return is_new

    def _put(self, news: Sequence[_Told]) -> None:
        while len(self.sent) > MAXIMUM_KNOWN:
            self.sent.popitem(last=False)
        for reader in self.readers:
            reader.put(news)


class ChangeFeed:
    """The changes of all users' tasks in one journal, for the pages that are open. Used on one event loop."""

    def __init__(self, journal: Journal, *, look_seconds: float = LOOK_SECONDS) -> None:
        self._journal = journal
        self._look_seconds = look_seconds
        self._users: dict[str, _User] = {}
        self._noticed: dict[str, None] = {}
        self._reading: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._end_watch: Callable[[], object] = lambda: None
        self._version = 0

    async def check(self, user: str) -> None:
        """Check that the user may open a further stream, and that the journal can be read.

        Raises:
            TooManyStreamsError: the user has the maximum number of streams open.
            JournalError: the journal cannot be read at the moment.
        """
        if (found := self._users.get(user)) is not None and len(found.readers) >= MAXIMUM_STREAMS:
            raise TooManyStreamsError(f"{MAXIMUM_STREAMS} streams of changes are open, which is the maximum")
        await self._journal.version()

    async def frames(self, user: str, since: float | None) -> AsyncGenerator[bytes]:
        """Yield the lines for a user's page; with ``since`` (Unix seconds) first the lines of all changes from then on.

        They end when the journal cannot be reached: the page asks again, and learns it from the answer.
        """
        with self._reading_as(user) as reader:
            # Before the page lists the tasks: what another process writes later must be found by a look.
            self._version = self._version or await self._journal.version()
            yield comment("changes")
            if since is not None:
                rows, total = await self._journal.list_tasks(TaskQuery(MAXIMUM_LISTED, since=since), user)
                if total > len(rows):
                    yield ALL
                reader.put((row.task_id, _line(row)) for row in reversed(rows))
                reader.put(_session_line(*each) for each in await self._journal.sessions.changed_since(user, since))
            while not reader.is_over:
                for frame in reader.take():
                    yield frame
                await reader.news.wait()

    @contextlib.contextmanager
    def _reading_as(self, user: str) -> Generator[_Reader]:
        reader = _Reader()
        if not self._users:
            ends = (
                self._journal.changes.watch(self._notice),
                self._journal.sessions.changes.watch(self._notice_session),
            )
            self._end_watch = lambda: [end() for end in ends]
            self._looking = asyncio.create_task(self._look())
        known = self._users.setdefault(user, _User(self._journal.now()))
        known.readers.add(reader)
        try:
            yield reader
        finally:
            known.readers.discard(reader)
            if not known.readers:
                self._users.pop(user, None)
            if not self._users:
                self._stop()

    def _stop(self) -> None:
        self._end_watch()
        self._noticed.clear()
        for task in (self._looking, self._reading):
            if task is not None:
                task.cancel()
        self._looking = self._reading = None
        self._version = 0

    def _notice(self, task_id: str) -> None:
        self._noticed[task_id] = None
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())

    def _notice_session(self, user: str, context_id: str, changed: float) -> None:
        if (found := self._users.get(user)) is not None:
            found.notify_sessions([(context_id, changed)])

    async def _read(self) -> None:
        """Read the tasks that were noticed, once for all pages, until there are no more."""
        try:
            while self._noticed:
                await asyncio.sleep(GATHER_SECONDS)
                noticed, self._noticed = list(self._noticed), {}
                for task_id in noticed:
                    row = await self._journal.task(task_id)
                    if row is not None and (user := self._users.get(row.user)) is not None:
                        user.notify([row], is_certain=True)
        except IsthmusError as error:
            log.warning("changes of tasks cannot be read; pages show them within half a minute: %s", error)
        finally:
            if self._reading is asyncio.current_task():
                self._reading = None

    async def _look(self) -> None:
        """Find changes of other processes."""
        while True:
            await asyncio.sleep(self._look_seconds)
            try:
                if (version := await self._journal.version()) != self._version:
                    self._version = version
                    for name, user in list(self._users.items()):
                        query = TaskQuery(MAXIMUM_LISTED, since=user.since - OVERLAP_SECONDS)
                        rows, _ = await self._journal.list_tasks(query, name)
                        sessions = await self._journal.sessions.changed_since(name, user.since - OVERLAP_SECONDS)
                        user.notify(reversed(rows), is_certain=False)
                        user.notify_sessions(sessions)
            except Unavailable:  # the journal has said so
                for reader in [reader for user in self._users.values() for reader in user.readers]:
                    reader.end()
            except IsthmusError as error:
                log.warning("changes of tasks by other programs cannot be read: %s", error)


def _line(row: TaskRow) -> bytes:
    """Return the line of a changed task, with the time of its change in milliseconds as the id to resume after."""
    content = {
        "id": row.task_id,
        "state": row.state,
        "questions": len(row.pending),
        "changed": row.updated_at,
        **({"parent": row.parent} if row.parent else {"contextId": row.context_id}),
    }
    return event_frame(encode(content), int(row.updated_at * 1000))


def _session_line(context_id: str, changed: float) -> _Told:
    """Return the line of a session whose record changed at a time in Unix seconds."""
    line = event_frame(encode({"session": context_id, "changed": changed}), int(changed * 1000))
    return f"session {context_id}", line
