"""The AgentClient port: all that a front, or a server, may ask of an agent.

The engine implements it in process, ``isthmus.a2a.client`` over A2A; whoever draws or serves a task sees
this and the events, nothing else. Deliberately not here: any wire, any storage, any policy.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from isthmus.development_tool import CommandExecutionStatus, SlashCommand, ToolCall, ToolCallConfirmation
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, ArtifactUpdate, MessagePart, TaskState
from isthmus.slash_commands.tree import Completion

ELICITATION = "elicitation"
"""The tool name of a call that is a question of an MCP server's, to be answered with what it wants to know."""
SAMPLING = "sampling"
"""The tool name of a call by which an MCP server asks the model."""
MISSED_EVENTS = "missed-events"
"""The reason of a state change after which events may be missing: the connection broke, and the server does not
replay."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event on its way to somebody.

    ``seq`` counts the kept events of a task from 1 and is what a subscriber resumes after; it is None for progress
    that is not kept. ``at`` is Unix time in seconds.
    """

    seq: int | None
    at: float
    event: AgentEvent


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """A message of the conversation as a plain A2A client sees it; ``role`` is ``user`` or ``agent``."""

    message_id: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """A task as it stands after its event ``seq``.

    ``pending`` are the tool calls that wait for a user, whole. ``history`` is oldest first. Times are Unix seconds.
    ``artifacts`` are whole, each as one update that is not appended. ``error`` and ``reason`` are those of the last
    state change. ``title`` is the beginning of the first prompt.
    """

    task_id: str
    context_id: str
    state: TaskState
    seq: int
    workspace: str
    created_at: float
    updated_at: float
    title: str = ""
    model: str = ""
    error: str | None = None
    reason: str | None = None
    pending: tuple[ToolCall, ...] = ()
    history: tuple[HistoryMessage, ...] = ()
    artifacts: tuple[ArtifactUpdate, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A user's message to the agent.

    Without ``task_id`` it makes a new task, in the session ``context_id`` or in a new one; with ``task_id`` it
    continues that task. ``settings`` are the AgentSettings as received (at least ``workspace_path``); the first
    message of a session needs them, unless the agent has a default workspace and ``requires_settings`` is False.
    ``may_continue_completed`` and ``requires_settings`` are both set for clients that speak the development-tool
    extension: there a completed task can go on (Appendix A, step 10), and a session begins with its settings.
    ``new_task_id`` is the id of the task that is made, where a client was told it before: a new UUID. When there is a
    task with it already, because another message came first, that one goes on. ``parts`` are the whole content of a
    message that is more than one text, ``metadata`` is its own.

    A message is taken once: one with the ``message_id`` and the content of an earlier one is answered with the task of
    that one, as it was then. Messages without an id are all new.
    """

    text: str
    message_id: str = ""
    task_id: str | None = None
    context_id: str | None = None
    settings: JsonObject | None = None
    may_continue_completed: bool = True
    requires_settings: bool = False
    new_task_id: str | None = None
    parts: tuple[MessagePart, ...] = ()
    metadata: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A stretch of a task's life: the task as it stood at the start, and what comes after.

    ``deliveries`` ends after the state change that ends the work or asks a user. It may be iterated once; leaving
    it early does not stop the task. ``is_new`` tells that the task was made by this call.
    """

    snapshot: TaskSnapshot
    deliveries: AsyncIterator[Delivery]
    is_new: bool = False

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self.snapshot.task_id

    @property
    def context_id(self) -> str:
        """The id of the session that the task belongs to."""
        return self.snapshot.context_id


@dataclass(frozen=True, slots=True)
class CommandScope:
    """Scope in which slash commands are found and run: a task's session, a session, a workspace, or the default.

    ``settings`` are AgentSettings as received.
    """

    task_id: str | None = None
    context_id: str | None = None
    settings: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class CommandMessage:
    """A user's slash command: e.g. ``("memory", "add")`` and its arguments as typed."""

    path: tuple[str, ...]
    args: str = ""
    scope: CommandScope = field(default_factory=CommandScope)
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class Execution:
    """The start of a slash command. ``turn`` is its task from the first event on; None when it did not start.

    ``message`` then says why, and what to do.
    """

    status: CommandExecutionStatus
    message: str | None = None
    turn: Turn | None = None


@dataclass(frozen=True, slots=True)
class PushTarget:
    """Destination of push notifications about a task: a PushNotificationConfig of A2A.

    ``token`` comes back in ``X-A2A-Notification-Token``. ``scheme`` and ``credentials`` make the Authorization header.
    """

    url: str
    id: str = ""
    token: str | None = None
    scheme: str | None = None
    credentials: str | None = None


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Filter for a list of tasks, last changed first: at most ``limit`` of those that fit every field but None.

    ``since`` is Unix time in seconds: changed then or later. ``after`` is the position of the last task on the page
    before.
    """

    limit: int = 100
    context_id: str | None = None
    state: TaskState | None = None
    since: float | None = None
    after: "TaskPlace | None" = None


class TaskPlace(NamedTuple):
    """Position of a task in the order of changes; of tasks that changed at once, the lower id comes first."""

    updated_at: float
    task_id: str


@dataclass(frozen=True, slots=True)
class TaskList:
    """A page of tasks, and how many there are on all pages."""

    tasks: Sequence[TaskSnapshot]
    total: int


def select_tasks(tasks: Iterable[TaskSnapshot], query: TaskQuery) -> TaskList:
    """Return the tasks of a sequence that a query matches."""
    fitting = [
        task
        for task in tasks
        if query.context_id in (None, task.context_id)
        and query.state in (None, task.state)
        and (query.since is None or task.updated_at >= query.since)
    ]
    fitting.sort(key=lambda task: (-task.updated_at, task.task_id))
    rest = fitting
    if query.after is not None:
        end = (-query.after.updated_at, query.after.task_id)
        rest = [task for task in fitting if (-task.updated_at, task.task_id) > end]
    return TaskList(rest[: query.limit], len(fitting))


@dataclass(frozen=True, slots=True)
class UserLimits:
    """Limits of one user; None means no limit.

    ``max_tasks`` counts tasks that have not ended: those that work and those that wait for an answer. ``max_running``
    counts those that work.
    """

    max_tasks: int | None = None
    max_running: int | None = None


class TaskError(IsthmusError):
    """A request about a task cannot be met; the task is as it was."""


class LimitReached(TaskError):
    """A cap on tasks or messages is reached; the error says which, what counts, and what makes room."""


class TaskNotFound(TaskError):
    """No task has this id (or the asker may not see it)."""


class InvalidRequest(TaskError):
    """The request's own values do not fit: a wrong context, an unknown option, missing or refused settings."""


class ContentNotSupported(TaskError):
    """A part of the message is of a kind that the agent does not read."""


class TaskNotResumable(TaskError):
    """The task has ended and takes no further message."""


class TaskNotCancelable(TaskError):
    """The task has already ended."""


@runtime_checkable
class LineCompleter(Protocol):
    """An agent that can say how what somebody types may go on; one that is far may not."""

    async def complete(self, scope: CommandScope, line: str) -> Sequence[Completion]:
        """Return completions of a line, behind a command's name or in a prompt, as whole lines; empty if none."""
        ...


@runtime_checkable
class LongFollower(Protocol):
    """An agent whose tasks can be followed while they wait for a user, too."""

    async def follow_to_end(self, task_id: str, after: int | None = None) -> Turn:
        """Follow a task as :meth:`AgentClient.follow` does, but past its questions, until the task ends."""
        ...


class AgentClient(Protocol):
    """An agent, near or far. Every method raises a :class:`TaskError` for requests that cannot be met."""

    async def prompt(self, message: PromptMessage) -> Turn:
        """Start a task, or continue one, with a user's message.

        A message to a task that is working waits until the current work ends and is then taken.
        """
        ...

    async def answer(
        self,
        task_id: str,
        confirmations: Sequence[ToolCallConfirmation],
        *,
        answered_by: str,
        context_id: str | None = None,
        message_id: str = "",
    ) -> Turn:
        """Answer questions of a task. The first answer wins; a later one for the same call raises InvalidRequest.

        The same answers with the same ``message_id`` do not count as later ones: the first outcome is returned again.
        """
        ...

    async def follow(self, task_id: str, after: int | None = None) -> Turn:
        """Return the events after number ``after`` (replayed, then live), or from now on when it is None."""
        ...

    async def cancel(self, task_id: str) -> TaskSnapshot:
        """Stop the task and whatever it runs; returns when that is recorded."""
        ...

    async def get(self, task_id: str, history_length: int | None = None) -> TaskSnapshot:
        """Return the task with at most ``history_length`` messages (None: a default); the agent may have a limit."""
        ...

    async def tasks(self, limit: int = 100) -> Sequence[TaskSnapshot]:
        """Return the tasks, most recently changed first, without history."""
        ...

    async def list_tasks(self, query: TaskQuery) -> TaskList:
        """Return a page of the tasks, without history."""
        ...

    async def commands(self, scope: CommandScope) -> Sequence[SlashCommand]:
        """Return the slash commands that can be executed there, as a tree."""
        ...

    async def execute(self, command: CommandMessage) -> Execution:
        """Start a slash command as a task of its own, in the session of its scope or in a new one.

        A command that cannot be started is not an error: the Execution says FAILED_TO_START and why.
        """
        ...

    async def aclose(self) -> None:
        """Let go of everything; tasks go on or wait as they are."""
        ...
