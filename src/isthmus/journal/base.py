"""The Journal port: tasks as append-only events with a projection row, a lease and an inbox (DESIGN, section 2).

Only the holder of a task's lease appends to it; every append carries the lease's epoch and fails when it is stale, so
that a process that was paused cannot write. Deliberately not here: what events mean (``isthmus.agent``) and who runs
tasks (``isthmus.engine``).
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from isthmus.client import Delivery, TaskQuery, UserLimits
from isthmus.development_tool import ToolCall
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, TaskState
from isthmus.journal.pushes import PushJournal

EventT = TypeVar("EventT", bound=AgentEvent)


class JournalError(IsthmusError):
    """The journal cannot be used; its file is as it was."""


class StaleLease(JournalError):
    """Somebody else holds the task now; what was to be written was not."""


class RepeatedMessage(JournalError):
    """The message was taken before; nothing was written. ``task_id`` is the task that it is in."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"the message was taken before, in task {task_id}")
        self.task_id = task_id


class UnkeepableEvent(JournalError):
    """An event itself is none that can be kept: no JSON, or too large. Nothing of its step was kept; later ones are."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """The projection of a task's events. Times are Unix seconds; ``seq`` is the number of its last event.

    ``user`` is whose task it is; the empty name is the local user's.
    """

    task_id: str
    context_id: str
    workspace: str
    title: str
    state: TaskState
    seq: int
    owner: str | None
    epoch: int
    lease_until: float
    created_at: float
    updated_at: float
    error: str | None = None
    reason: str | None = None
    pending: tuple[ToolCall, ...] = ()
    user: str = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to append to a task, until somebody else takes it."""

    task_id: str
    owner: str
    epoch: int


@dataclass(frozen=True, slots=True)
class NewTask:
    """What a task begins with. ``user`` is whose it is, and whose session ``context_id`` is.

    ``message_id`` and ``digest`` are of the message that begins it: the client's id, and what tells its content.
    """

    task_id: str
    context_id: str
    workspace: str
    title: str
    user: str = ""
    message_id: str = ""
    digest: str = ""


NO_LIMITS = UserLimits()
EVENT_CHARACTERS = 64 * 1024 * 1024
"""What one event may hold, as JSON."""
INBOX_MESSAGES = 256
"""Messages that may wait in one task's inbox."""
INBOX_CHARACTERS = 16 * 1024 * 1024
"""What the messages in one task's inbox may hold together, as JSON."""


class Removal(Protocol):
    """Removing tasks for good, in small steps: marked in one, after which nobody finds them, then emptied.

    A mark outlives the process that made it. All raise :class:`JournalError`.
    """

    def mark(self, task_ids: Sequence[str], *, also_waiting: bool = False) -> Awaitable[Sequence[str]]:
        """Mark these tasks; returns those that were. Ended ones only, unless ``also_waiting``; a running one never."""
        ...

    async def marked(self) -> Sequence[str]:
        """Return the tasks that are marked and not removed yet."""
        ...

    def remove(self, task_id: str, rows: int) -> Awaitable[bool]:
        """Remove at most ``rows`` events of a marked task, and the task with the last of them; True when it is gone."""
        ...

    async def ended(
        self, limit: int, *, newest: int = 0, until: float | None = None, user: str | None = None
    ) -> Sequence[TaskRow]:
        """Ended tasks, the longest unchanged first, without the ``newest`` ones and those changed after ``until``.

        Those of ``user`` alone when one is named.
        Tasks of a session in which another one works or waits are left out: its conversation is still needed.
        """
        ...

    async def shares(self) -> Mapping[str, int]:
        """How many characters the tasks of each user take, roughly; costs a look at every event."""
        ...

    async def size(self) -> int:
        """Bytes that the journal's tasks take, without the room that removed ones left."""
        ...

    async def free_pages(self) -> int:
        """Pages of room that removed tasks left."""
        ...

    def give_back(self, pages: int) -> Awaitable[None]:
        """Give room that removed tasks left back to the file system, so many pages at the most."""
        ...

    async def erase(self) -> bool:
        """Let no copy of what was removed stay in a log beside the file; False when somebody reads there just now."""
        ...


class Journal(Protocol):
    """Where tasks are kept.

    Methods that write return an awaitable which is done once the write is committed; the write is queued by the call
    itself, in order, so that a caller may go on without awaiting. It is never taken back: who is cancelled while he
    waits hears of that when it is done. All raise :class:`JournalError`.
    """

    removal: Removal
    """Removes tasks."""
    pushes: PushJournal
    """Keeps the webhooks of tasks."""

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
        """Add events. With ``full_sync`` they are on the disk, not only with the operating system, when it returns.

        A StateChange sets the row's state. Raises StaleLease and UnkeepableEvent. Once a write of a lease was refused
        by the disk, so is each later one: what is kept has no gaps.
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
        """Add the events that end a segment and let go of the lease, unless something came into the inbox meanwhile.

        Then nothing is written, the inbox is returned as it stands, and the lease stays. With ``discard_inbox`` what
        came is dropped instead. Raises StaleLease.
        """
        ...

    def take(self, lease: Lease, events: Sequence[AgentEvent], count: int) -> Awaitable[Sequence[Delivery]]:
        """Add what is kept of the ``count`` oldest events in the inbox and remove those, in one step.

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
        """Take a task at rest as it was read; None when somebody has taken it since.

        The state becomes ``working`` (an ended or waiting task) and the events are added in the same step.

        Raises:
            LimitReached: its user has as many tasks as ``limits`` allow; the task is at rest as before.
        """
        ...

    def take_over(self, row: TaskRow, owner: str, lease_seconds: float) -> "Awaitable[ClaimedTask | None]":
        """Take a task from an owner that is gone; None when somebody else was faster."""
        ...

    def renew(self, leases: Sequence[Lease], lease_seconds: float) -> Awaitable[Sequence[Lease]]:
        """Hold leases longer; returns those that are lost."""
        ...

    def release(self, leases: Sequence[Lease]) -> Awaitable[None]:
        """Let go of tasks that are not at an end, so that another engine may go on with them at once."""
        ...

    def post(self, row: TaskRow, events: Sequence[AgentEvent]) -> Awaitable[None]:
        """Leave events for the owner of a running task: answers, a message, or a cancellation; all or none.

        Raises StaleLease when the task rests or has another owner since it was read, or one of its calls has got
        another answer since; RepeatedMessage when a message with the same id and content has come since;
        LimitReached when too many messages wait there already. Answers and cancellations are not counted.
        """
        ...

    def cancelled(self, leases: Sequence[Lease]) -> Awaitable[Sequence[str]]:
        """Return the ids of these tasks that have a cancellation in their inbox."""
        ...

    async def inbox(self, task_id: str) -> Sequence[AgentEvent]:
        """What was left for the owner of a running task and is not taken yet."""
        ...

    async def waiting(self, task_id: str, kind: type[EventT]) -> Sequence[EventT]:
        """Return the events of one type in a task's inbox, at the same cost however many others there are."""
        ...

    async def task(self, task_id: str) -> TaskRow | None:
        """Return one row, or None."""
        ...

    async def find(self, beginning: str, limit: int) -> Sequence[TaskRow]:
        """Return the tasks whose ids begin so."""
        ...

    async def tasks(self, limit: int, states: Sequence[TaskState] = (), user: str | None = None) -> Sequence[TaskRow]:
        """Rows, last changed first; all states when none are named, all users when none is."""
        ...

    async def list_tasks(self, query: TaskQuery, user: str, roots: Sequence[str] = ()) -> tuple[Sequence[TaskRow], int]:
        """A page of a user's rows, and how many are on all pages; if there are ``roots``, of those below them alone."""
        ...

    async def begun_by(self, user: str, message_id: str) -> Sequence[tuple[str, str]]:
        """The tasks of a user that began with a message of this id, the newest first, each with the digest of it."""
        ...

    async def of_message(self, task_id: str, message_id: str) -> Sequence[Delivery]:
        """Return the Prompt and ConfirmationAccepted events that a message with this id left in a task, in order.

        Those that still wait in its inbox come last and have no number.
        """
        ...

    async def workspace_of(self, context_id: str, user: str = "") -> str | None:
        """Return the workspace of a user's session; None when that user has no such session."""
        ...

    def now(self) -> float:
        """Return the journal's time, which leases are counted in: Unix seconds."""
        ...

    async def events(self, task_id: str, after: int, limit: int) -> Sequence[Delivery]:
        """Return the task's events after number ``after``, in order."""
        ...

    async def messages(self, task_id: str, limit: int, before: int | None = None) -> Sequence[Delivery]:
        """Return the last ``limit`` messages, of those before number ``before``; in order.

        They are the Prompt, Command, ModelReply and AgentMessage events.
        """
        ...

    async def artifacts(self, task_id: str) -> Sequence[Delivery]:
        """The task's ArtifactUpdate events, in order; costs nothing for tasks that have none, however long they are."""
        ...

    async def session(self, context_id: str, user: str = "") -> Sequence[tuple[str, Delivery]]:
        """All events of all tasks of a user's session that a conversation is folded from, in order, with task ids.

        Text increments, thoughts and retry notices are left out: the ModelReply holds their whole.
        """
        ...

    async def aclose(self) -> None:
        """Finish what is queued and close."""
        ...


@dataclass(frozen=True, slots=True)
class ClaimedTask:
    """A lease that was got, the row as it is now, and the events that were added with it."""

    lease: Lease
    row: TaskRow
    deliveries: Sequence[Delivery]


@dataclass(frozen=True, slots=True)
class Finished:
    """``inbox`` is not empty when the segment did not end."""

    deliveries: Sequence[Delivery]
    inbox: Sequence[AgentEvent] = ()
