"""The port to the sessions of a journal: the tasks of one context as a unit, with a name and a place in the archive.

A session is listed by its tasks, so that each one is there without a record. The name and the archive are records of
their own; they are removed with the last task of the session. Tasks of subagents belong to no session of a user.
"""

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from isthmus.events import TaskState
from isthmus.journal.port.task_rows import TaskRow
from isthmus.record import record

TITLE_CHARACTERS = 200
"""Maximum length of a session's name."""
SEARCHED_TASKS = 2000
"""Number of tasks after which one step of a list ends."""
SEARCHED_CHARACTERS = 20_000
"""Number of characters of each prompt that are searched."""


class SessionState(StrEnum):
    """State of a session: it waits if a task of it waits, else it works if one works, else it is as its newest task."""

    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"


class SessionPlace(NamedTuple):
    """The place of a session in a list: the time of its last change in Unix seconds, and its context's id."""

    updated_at: float
    context_id: str


@record
class SessionNote:
    """The record of a session. ``name`` is empty for a session without one.

    ``title`` is the title that it had when its first task was removed, ``archived_at`` the time in Unix seconds.
    """

    name: str = ""
    title: str = ""
    archived_at: float | None = None


@record
class SessionRow:
    """A session. ``tasks`` are the tasks of the user in the order in which they began, at least one.

    ``questions`` is the number of tool calls that wait for an answer, also those of subagents.
    """

    context_id: str
    tasks: tuple[TaskRow, ...]
    note: SessionNote = SessionNote()
    questions: int = 0

    @property
    def given_title(self) -> str:
        """Title from the first prompt; the first command if there is no prompt."""
        titles = [task.title for task in self.tasks]
        return self.note.title or next((title for title in titles if not title.startswith("/")), titles[0])

    @property
    def title(self) -> str:
        """Name that the user chose, otherwise the given title."""
        return self.note.name or self.given_title

    @property
    def workspace(self) -> str:
        """Folder of the session; empty if no task has one."""
        return next((task.workspace for task in self.tasks if task.workspace), "")

    @property
    def updated_at(self) -> float:
        """Time of the last change in Unix seconds."""
        return max(task.updated_at for task in self.tasks)

    @property
    def place(self) -> SessionPlace:
        """Place of the session in a list."""
        return SessionPlace(self.updated_at, self.context_id)

    @property
    def state(self) -> SessionState:
        """State of the session."""
        states = [task.state for task in self.tasks]
        if self.questions or any(state.is_waiting for state in states):
            return SessionState.WAITING
        if any(not state.is_terminal for state in states):
            return SessionState.WORKING
        return SessionState.DONE if states[-1] is TaskState.COMPLETED else SessionState.FAILED


@record
class SessionQuery:
    """Request for one step of a list of sessions, last changed first: at most ``limit`` of those that have all words.

    A word is found, in any case, in the title, in the beginning of each prompt, or in the workspace. Without a
    ``state`` all states count. The step goes on behind ``after``, the place at which the step before stopped.
    """

    words: tuple[str, ...] = ()
    state: SessionState | None = None
    is_archived: bool = False
    after: SessionPlace | None = None
    limit: int = 50


@record
class FoundSessions:
    """Sessions that a step found, each with the prompt in which a word is that is nowhere else; mostly empty.

    The step looked at ``searched`` sessions, and the next one goes on at ``next``; None: that was all.
    """

    found: Sequence[tuple[SessionRow, str]]
    searched: int
    next: SessionPlace | None


Notify: TypeAlias = Callable[[str, str, float], None]
"""Function that takes the user, the context's id and the time of a changed record, in Unix seconds.

It is called on the event loop and must not fail.
"""


class SessionChanges:
    """The watchers of the records of sessions in this process."""

    def __init__(self) -> None:
        self._watchers: tuple[Notify, ...] = ()

    def watch(self, notify: Notify) -> Callable[[], None]:
        """Call ``notify`` for each change from now on, until the returned function is called."""
        self._watchers = (*self._watchers, notify)

        def end() -> None:
            self._watchers = tuple(watcher for watcher in self._watchers if watcher is not notify)

        return end

    def notify(self, user: str, context_id: str, changed: float) -> None:
        """Tell the watchers of a change that was written."""
        for watcher in self._watchers:
            watcher(user, context_id, changed)


class SessionStore(Protocol):
    """The sessions of all users; the empty user is the local one. All methods raise JournalError."""

    changes: SessionChanges
    """Notices of changed records."""

    async def list(self, query: SessionQuery, user: str, roots: Sequence[str] = ()) -> FoundSessions:
        """Return what one step of a list found; with ``roots``, only sessions below a root count.

        A step ends after :data:`SEARCHED_TASKS` tasks, or a few more.
        """
        ...

    async def session(self, context_id: str, user: str, roots: Sequence[str] = ()) -> SessionRow | None:
        """Return a session of a user, or None; with ``roots``, only one below a root."""
        ...

    def rename(self, context_id: str, user: str, name: str) -> Awaitable[bool]:
        """Give a session a name, or with an empty one the given title again; return whether there is such a session."""
        ...

    def archive(self, context_id: str, user: str, *, is_archived: bool) -> Awaitable[bool]:
        """Put a session into the archive or take it out; return whether there is such a session."""
        ...

    async def changed_since(self, user: str, since: float) -> Sequence[tuple[str, float]]:
        """Return the contexts of a user whose records changed at ``since`` (Unix seconds) or later, with the time."""
        ...
