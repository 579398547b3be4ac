"""The Journal port: tasks as append-only events with a projection row, a lease and an inbox.

Only the holder of a task's lease appends to it. Every append carries the lease's epoch and fails when it is stale, so
that a paused process cannot write later. Does not interpret events (see ``isthmus.agent``) or run tasks (see
``isthmus.engine``).
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol, TypeVar

from isthmus.client import NO_LIMITS, Delivery, TaskPlace, TaskQuery, UserLimits
from isthmus.development_tool import ToolCall
from isthmus.errors import IsthmusError, Unavailable
from isthmus.events import AgentEvent, TaskState
from isthmus.journal.port.pushes import PushJournal
from isthmus.journal.port.queue import TaskQueue
from isthmus.journal.port.removed_tokens import Used
from isthmus.journal.port.replicas import Replicas
from isthmus.journal.port.saved_chats import ChatStore
from isthmus.journal.port.sessions import SessionStore
from isthmus.journal.port.task_changes import TaskChanges
from isthmus.journal.port.task_files import TaskFileStore
from isthmus.journal.port.task_rows import ClaimedTask, Finished, Lease, NewTask, TaskRow
from isthmus.record import record

EventT = TypeVar("EventT", bound=AgentEvent)


class JournalError(IsthmusError):
    """The journal cannot be used; its file is unchanged."""


class JournalUnavailable(JournalError, Unavailable):
    """The journal's database cannot be reached at the moment; the same may be asked again, as the text says."""


class StaleLease(JournalError):
    """Another process holds the task now; nothing was written."""


class RepeatedMessage(JournalError):
    """The journal already has this message, in the task ``task_id``; nothing was written."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"the message was already received, in task {task_id}")
        self.task_id = task_id


class UnkeepableEvent(JournalError):
    """The event cannot be stored (not JSON, or too large). Its batch was discarded; later batches are unaffected."""


@record
class TaskCount:
    """Number of the tasks in a state, of one ``user`` (empty: the local one) or of all."""

    state: TaskState
    tasks: int
    user: str = ""


@record
class TaskSearch:
    """Search over the tasks that a user began, last changed first: at most ``limit`` tasks that have all words.

    A word is found, in any case, in the title, the beginning of the first prompt or the workspace. ``states``, unless
    empty, are those that count. ``after`` is the place at which the step before stopped.
    """

    words: tuple[str, ...] = ()
    states: tuple[TaskState, ...] = ()
    after: TaskPlace | None = None
    limit: int = 50


@record
class FoundRows:
    """Rows that a step of a search found, each with the beginning of its task's first prompt if a word is there alone.

    The step looked at ``searched`` of the ``total`` tasks, and the next one goes on at ``next``; None: that was all.
    """

    found: Sequence[tuple[TaskRow, str]]
    searched: int
    total: int
    next: TaskPlace | None


SEARCHED_TASKS = 2000
"""Maximum number of tasks that one step of a search looks at."""
SEARCHED_CHARACTERS = 20_000
"""Number of characters of a first prompt that are searched."""
EVENT_CHARACTERS = 64 * 1024 * 1024
"""Maximum size of one event as JSON, in characters."""
INBOX_MESSAGES = 256
"""Maximum number of messages in one task's inbox."""
INBOX_CHARACTERS = 16 * 1024 * 1024
"""Maximum size of all messages in one task's inbox together as JSON, in characters."""


class Removal(Protocol):
    """Removal of tasks in small steps: a task is marked first, after which no query finds it, and emptied afterwards.

    A mark outlives the process that made it. All methods raise :class:`JournalError`.
    """

    def mark(self, task_ids: Sequence[str], *, also_waiting: bool = False) -> Awaitable[Sequence[str]]:
        """Mark ended tasks, with ``also_waiting`` also waiting ones but none at work; return those that were marked.

        The tasks that a marked one has begun are marked with it.
        """
        ...

    async def marked(self) -> Sequence[str]:
        """Return the tasks that are marked and not removed yet."""
        ...

    def remove(self, task_id: str, rows: int) -> Awaitable[bool]:
        """Remove up to ``rows`` events of a marked task, and with the last one the task; return whether it is gone."""
        ...

    async def used(self, user: str, begun: int) -> Mapping[str, Used]:
        """Return what models used for a user's removed tasks on the day that began at ``begun``, by task."""
        ...

    async def ended(
        self, limit: int, *, newest: int = 0, until: float | None = None, user: str | None = None
    ) -> Sequence[TaskRow]:
        """Return ended tasks, the one unchanged for longest first.

        The ``newest`` ones and those changed after ``until`` (Unix seconds) are left out, and with ``user`` the tasks
        of other users. Tasks of a session in which another task works or waits are left out because their conversation
        is still needed.
        """
        ...

    async def shares(self) -> Mapping[str, int]:
        """Return the approximate size of each user's tasks in characters; reads every event."""
        ...

    async def size(self) -> int:
        """Return the size of the journal's tasks in bytes, without the space that removed tasks left."""
        ...

    async def free_pages(self) -> int:
        """Return the number of free pages that removed tasks left."""
        ...

    def give_back(self, pages: int) -> Awaitable[None]:
        """Return up to ``pages`` free pages that removed tasks left to the file system."""
        ...

    async def erase(self) -> bool:
        """Erase removed data from the log beside the file; return False when another connection is reading it."""
        ...


class Journal(Protocol):
    """The store of tasks.

    Methods that write queue the write in the call itself, in order, so that a caller may go on without awaiting. They
    return an awaitable that is done once the write is committed. A queued write cannot be cancelled: a cancelled waiter
    is notified once the write has completed. All methods raise :class:`JournalError`.
    """

    removal: Removal
    """Removal of tasks."""
    pushes: PushJournal
    """Webhooks of tasks."""
    chats: ChatStore
    """Saved chats of users."""
    sessions: SessionStore
    """Sessions of users: lists, names and the archive."""
    changes: TaskChanges
    """Notices of changed tasks."""
    queue: TaskQueue
    """Tasks that wait for a process with a free slot."""
    replicas: Replicas
    """The other processes that work with the journal."""
    files: TaskFileStore | None
    """Files of tasks that travel with them; None if all processes of the journal have the same data folder."""

    def create(
        self,
        task: NewTask,
        events: Sequence[AgentEvent],
        owner: str,
        lease_seconds: float,
        limits: UserLimits = NO_LIMITS,
    ) -> "Awaitable[ClaimedTask]":
        """Add a task in state ``submitted`` with its first events, leased to ``owner``.

        Raises:
            RepeatedMessage: a task of the same user began with this message.
            LimitReached: its user has as many tasks as ``limits`` allow.
        """
        ...

    def append(
        self, lease: Lease, events: Sequence[AgentEvent], *, full_sync: bool = False
    ) -> Awaitable[Sequence[Delivery]]:
        """Add events. With ``full_sync`` they are on the disk when the write is done, otherwise in the system's cache.

        A StateChange sets the row's state. Raises StaleLease and UnkeepableEvent. After the disk has refused a write of
        a lease, all later writes of that lease fail, so that a task's events have no gaps.
        """
        ...

    def finish(
        self,
        lease: Lease,
        events: Sequence[AgentEvent],
        pending: Sequence[ToolCall],
        *,
        discard_inbox: bool = False,
    ) -> "Awaitable[Finished]":
        """Add the events that end a run of the task and release the lease, unless the inbox is not empty.

        If it is not, nothing is written, the lease stays and the inbox is returned. With ``discard_inbox`` the inbox is
        emptied instead. Raises StaleLease.
        """
        ...

    def take(self, lease: Lease, events: Sequence[AgentEvent], count: int) -> Awaitable[Sequence[Delivery]]:
        """Add the stored form of the ``count`` oldest events in the inbox and remove those from it, in one step.

        Raises StaleLease.
        """
        ...

    def claim(
        self,
        row: TaskRow,
        events: Sequence[AgentEvent],
        owner: str,
        lease_seconds: float,
        limits: UserLimits = NO_LIMITS,
    ) -> "Awaitable[ClaimedTask | None]":
        """Claim a task without an owner, unchanged since ``row`` was read; None when another process has claimed it.

        The state becomes ``working`` (the task had ended or was waiting) and the events are added in the same step.

        Raises:
            LimitReached: its user has as many tasks as ``limits`` allow; the task is at rest as before.
        """
        ...

    def take_over(self, row: TaskRow, owner: str, lease_seconds: float) -> "Awaitable[ClaimedTask | None]":
        """Claim a task whose owner is gone; None if another claimed it or its lease was renewed since it was read."""
        ...

    def renew(self, leases: Sequence[Lease], lease_seconds: float) -> Awaitable[Sequence[Lease]]:
        """Extend leases by ``lease_seconds`` from now; return the leases that are lost."""
        ...

    def release(self, leases: Sequence[Lease]) -> Awaitable[None]:
        """Release tasks that have not ended, so that another engine may continue them at once."""
        ...

    def post(self, row: TaskRow, events: Sequence[AgentEvent]) -> Awaitable[None]:
        """Put events into the inbox of a task that runs or is queued: answers, a message, a cancellation; all or none.

        Raises StaleLease when the task has lost or changed its owner since ``row`` was read, or when one of its tool
        calls has been answered since; RepeatedMessage when a message with the same id and content has arrived since;
        LimitReached when the inbox is full. Answers and cancellations do not count towards the limit.
        """
        ...

    def cancelled(self, leases: Sequence[Lease]) -> Awaitable[Sequence[str]]:
        """Return the ids of these tasks that have a cancellation in their inbox."""
        ...

    async def inbox(self, task_id: str) -> Sequence[AgentEvent]:
        """Return the events in a running task's inbox that its owner has not taken yet."""
        ...

    async def waiting(self, task_id: str, kind: type[EventT]) -> Sequence[EventT]:
        """Return the events of one type in a task's inbox; its cost does not grow with the other events there."""
        ...

    async def task(self, task_id: str) -> TaskRow | None:
        """Return one row, or None."""
        ...

    async def children(self, task_id: str) -> Sequence[TaskRow]:
        """Return the tasks whose parent is this task, in the order in which they were created."""
        ...

    async def find(self, beginning: str, limit: int) -> Sequence[TaskRow]:
        """Return up to ``limit`` tasks whose ids start with ``beginning``."""
        ...

    async def tasks(self, limit: int, states: Sequence[TaskState] = (), user: str | None = None) -> Sequence[TaskRow]:
        """Return rows, last changed first; of all states if ``states`` is empty, of all users if ``user`` is None."""
        ...

    async def list_tasks(self, query: TaskQuery, user: str, roots: Sequence[str] = ()) -> tuple[Sequence[TaskRow], int]:
        """Return a page of a user's rows and their number on all pages; with ``roots``, only rows below a root."""
        ...

    async def search(self, search: TaskSearch, user: str, roots: Sequence[str] = ()) -> "FoundRows":
        """Return what one step of a search over a user's tasks found; with ``roots``, only rows below a root count.

        A step looks at up to :data:`SEARCHED_TASKS` tasks.
        """
        ...

    async def begun_by(self, user: str, message_id: str) -> Sequence[tuple[str, str]]:
        """Return the ids of a user's tasks that began with this message, newest first, with the messages' digests."""
        ...

    async def of_message(self, task_id: str, message_id: str) -> Sequence[Delivery]:
        """Return the Prompt and ConfirmationAccepted events of a message with this id in a task, in order.

        Events that still wait in its inbox come last and have no number.
        """
        ...

    async def workspace_of(self, context_id: str, user: str = "") -> str | None:
        """Return the workspace of a user's session; None when it has no folder, or that user no such session."""
        ...

    async def counts(self, *, by_user: bool = False) -> Sequence[TaskCount]:
        """Return the number of tasks in each state that one has, of each user or of all; reads a whole index."""
        ...

    async def version(self) -> int:
        """Return a number that is another one after the journal was written, by whichever process."""
        ...

    def now(self) -> float:
        """Return the time of the journal's clock in Unix seconds; leases expire by this clock."""
        ...

    async def events(self, task_id: str, after: int, limit: int) -> Sequence[Delivery]:
        """Return the task's events after number ``after``, in order."""
        ...

    async def messages(self, task_id: str, limit: int, before: int | None = None) -> Sequence[Delivery]:
        """Return the last ``limit`` messages before event number ``before``, in order.

        Messages are the Prompt, Command, ModelReply and AgentMessage events.
        """
        ...

    async def artifacts(self, task_id: str) -> Sequence[Delivery]:
        """Return the task's ArtifactUpdate events, in order; its cost does not grow with the task's other events."""
        ...

    async def session(self, context_id: str, user: str = "") -> Sequence[tuple[str, Delivery]]:
        """Return the events of a user's session from which its conversation is built, in order, with their task ids.

        Text increments, thoughts and retry notices are left out: the ModelReply holds the complete text.
        """
        ...

    async def aclose(self) -> None:
        """Write everything that is queued, then close."""
        ...
