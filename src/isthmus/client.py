"""The AgentClient port: all that a front or a server may ask of an agent.

The engine implements it in this process, ``isthmus.a2a.client`` over A2A. Fronts and servers depend on this module and
the events alone.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import field
from typing import NamedTuple, Protocol, runtime_checkable

from isthmus.development_tool import (
    CommandExecutionStatus,
    SlashCommand,
    ToolCall,
    ToolCallConfirmation,
)
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, ArtifactUpdate, MessagePart, TaskState
from isthmus.record import record
from isthmus.session_status import SessionStatus
from isthmus.slash_commands.tree import Completion

OFFLINE = "offline"
"""Reason of ``working`` while the network is away: the work goes on by itself when it is back."""
INTERRUPTED = "interrupted"
"""State for users of a task that no process works on, since the one that did has ended."""
MISSED_EVENTS = "missed-events"
"""Reason of a state change after which events may be missing: the connection broke, and the server replays none."""


def state_text(state: str, reason: str | None, *, is_interrupted: bool = False) -> str:
    """Return a task's state for users: its name, whether the network is away, or that its process has ended."""
    if is_interrupted:
        return INTERRUPTED
    return f"{state} ({OFFLINE})" if reason == OFFLINE else str(state)


@record
class Delivery:
    """An event as a subscriber receives it.

    ``seq`` is its number among the stored events of the task, from 1, after which a subscriber can resume; None for
    progress that is not stored. ``at`` is Unix time in seconds.
    """

    seq: int | None
    at: float
    event: AgentEvent


@record
class HistoryMessage:
    """A message in the history of a task; ``role`` is ``user`` or ``agent``."""

    message_id: str
    role: str
    text: str


@record
class TaskSnapshot:
    """The state of a task after its event ``seq``.

    ``pending`` has the tool calls that wait for a user. ``history`` is oldest first. Each artifact is one complete
    update. ``error`` and ``reason`` belong to the last state change. ``title`` is the beginning of the first prompt.
    Times are Unix seconds. ``parent`` is the id of the task that began this one for a part of its work; empty if a user
    did. ``is_interrupted``: it is to be worked on, and the process that did has ended.
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
    parent: str = ""
    is_interrupted: bool = False

    @property
    def state_text(self) -> str:
        """The state for users, who see that the work waits for the network, or was interrupted."""
        return state_text(self.state, self.reason, is_interrupted=self.is_interrupted)


NO_TEXT = "See the attached file."
"""Text of a message of files alone, since every message to an agent has one."""


@record
class PromptMessage:
    """A user's message to the agent.

    With ``task_id`` it continues that task. Without, it starts a new one, in the session ``context_id`` or in a new
    session. ``new_task_id`` is the id of the new task if a client was promised one: a new UUID. If another message has
    started that task already, this one continues it.

    ``settings`` are the AgentSettings as received (at least ``workspace_path``); the first message of a session needs
    them, unless the agent has a default workspace and ``requires_settings`` is False. ``may_continue_completed`` and
    ``requires_settings`` are set for clients of the development-tool extension, in which a completed task can continue
    (Appendix A, step 10) and a session begins with its settings. ``parts`` is the whole content of a message that is
    more than one text; ``metadata`` is the message's own. ``is_steering``: if the task works when it arrives, the model
    reads it before its next message; otherwise, and over A2A, it is a message like others. ``extension`` is the URI of
    the development-tool extension in the client's spelling, empty if its client speaks A2A without it, and None if the
    message did not come over A2A. Events of the task go out in that form.

    A message is accepted once: the repetition of an earlier one, with its ``message_id`` and content, is answered with
    the task of that one as it was then. Messages without an id are never repetitions.
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
    is_steering: bool = False
    extension: str | None = None


@record
class Turn:
    """A part of a task's progress: its state at the start, and the events that follow.

    ``deliveries`` ends after the state change that ends the work or asks a user. It can be iterated once; leaving it
    early does not stop the task. ``is_new``: the task was started by this call.
    """

    snapshot: TaskSnapshot
    deliveries: AsyncIterator[Delivery]
    is_new: bool = False

    @property
    def task_id(self) -> str:
        """Id of the task."""
        return self.snapshot.task_id

    @property
    def context_id(self) -> str:
        """Id of the session of the task."""
        return self.snapshot.context_id


@record
class CommandScope:
    """Scope in which slash commands are found and run: a task's session, a session, a workspace, or the default.

    ``settings`` are AgentSettings as received.
    """

    task_id: str | None = None
    context_id: str | None = None
    settings: JsonObject | None = None


@record
class CommandMessage:
    """A user's slash command: e.g. ``("memory", "add")`` and its arguments as typed.

    ``extension`` is as in :class:`PromptMessage`.
    """

    path: tuple[str, ...]
    args: str = ""
    scope: CommandScope = field(default_factory=CommandScope)
    message_id: str = ""
    extension: str | None = None


@record
class Execution:
    """The start of a slash command. ``turn`` has all events of its task; None if it did not start.

    ``message`` then says why, and what to do.
    """

    status: CommandExecutionStatus
    message: str | None = None
    turn: Turn | None = None


@record
class PushTarget:
    """Destination of push notifications about a task: a PushNotificationConfig of A2A.

    ``token`` is sent as ``X-A2A-Notification-Token``; ``scheme`` and ``credentials`` form the Authorization header.
    """

    url: str
    id: str = ""
    token: str | None = None
    scheme: str | None = None
    credentials: str | None = None


@record
class TaskQuery:
    """Filter for a list of tasks, last changed first: at most ``limit`` that match every field that is not None.

    ``since``: changed at this Unix time in seconds or later. ``after`` is the position of the last task on the previous
    page.
    """

    limit: int = 100
    context_id: str | None = None
    state: TaskState | None = None
    since: float | None = None
    after: "TaskPlace | None" = None


class TaskPlace(NamedTuple):
    """Position of a task in the order of changes; of tasks that changed at the same time, the lower id comes first."""

    updated_at: float
    task_id: str


@record
class TaskList:
    """A page of tasks, and the number of tasks on all pages."""

    tasks: Sequence[TaskSnapshot]
    total: int


def select_tasks(tasks: Iterable[TaskSnapshot], query: TaskQuery) -> TaskList:
    """Return the page of ``tasks`` that a query asks for."""
    fitting = [
        task
        for task in tasks
        if query.context_id in (None, task.context_id)
        and query.state in (None, task.state)
        and (query.since is None or task.updated_at >= query.since)
    ]
    fitting.sort(key=lambda task: (-task.updated_at, task.task_id))
    following = fitting
    if query.after is not None:
        end = (-query.after.updated_at, query.after.task_id)
        following = [task for task in fitting if (-task.updated_at, task.task_id) > end]
    return TaskList(following[: query.limit], len(fitting))


@record
class UserLimits:
    """Limits of one user; None means no limit.

    ``max_tasks`` limits tasks that have not ended, whether they work or wait; ``max_running`` limits those that work.
    Tasks that wait in the queue leave it when fewer are at work.
    """

    max_tasks: int | None = None
    max_running: int | None = None


NO_LIMITS = UserLimits()


class TaskError(IsthmusError):
    """A request about a task was refused; the task is unchanged."""


class LimitReached(TaskError):
    """A limit on tasks or messages is reached; the text says which one, what counts, and how to make room."""


class AllAtWork(LimitReached):
    """The user has as many tasks at work as may be at once; a further one may wait until one has ended."""


class TaskNotFound(TaskError):
    """No task that the user may see has this id."""


class InvalidRequest(TaskError):
    """A value of the request is invalid: a wrong context, an unknown option, missing or refused settings."""


class ChangedQuestion(InvalidRequest):
    """The question that an answer is for is another one now; it stays open."""


class ContentNotSupported(TaskError):
    """A part of the message is of a kind that the agent does not accept."""


class TaskNotResumable(TaskError):
    """The task has ended and accepts no further message."""


class TaskNotCancelable(TaskError):
    """The task has already ended."""


@runtime_checkable
class LineCompleter(Protocol):
    """An agent that can complete lines as a user types them; remote agents may lack it."""

    async def complete(self, scope: CommandScope, line: str) -> Sequence[Completion]:
        """Return completions of a line, a command with arguments or a prompt, as whole lines; empty if none."""
        ...


@runtime_checkable
class SessionStatusProvider(Protocol):
    """An agent that tells the state of a session; remote agents may know nothing of it."""

    async def session_status(self, scope: CommandScope) -> SessionStatus:
        """Return the state of the session of a scope, or of a new one there."""
        ...


@runtime_checkable
class AnswersWithWords(Protocol):
    """An agent that takes a message together with answers."""

    async def answer_with(
        self, task_id: str, confirmations: Sequence[ToolCallConfirmation], message: PromptMessage, *, answered_by: str
    ) -> Turn:
        """Answer as :meth:`AgentClient.answer` does, with a message that the model reads once the calls have run.

        Both are kept, or neither, also if the process ends. Questions that are not answered stay open.
        """
        ...


@runtime_checkable
class LongFollower(Protocol):
    """An agent whose tasks can be followed also while they wait for a user."""

    async def follow_to_end(self, task_id: str, after: int | None = None) -> Turn:
        """Follow a task as :meth:`AgentClient.follow` does, but past its questions, until the task ends."""
        ...


@runtime_checkable
class ShownAnswerer(Protocol):
    """An agent that takes an answer only if a call asks exactly what the user was shown."""

    async def answer_shown(
        self,
        task_id: str,
        confirmation: ToolCallConfirmation,
        is_shown: Callable[[ToolCall], bool],
        *,
        answered_by: str,
        message_id: str,
    ) -> Turn:
        """Answer a question as :meth:`AgentClient.answer` does, if the waiting call asks what the user was shown.

        Raises:
            ChangedQuestion: ``is_shown`` returned false.

        Args:
            task_id: The task that waits.
            confirmation: The answer.
            is_shown: A function that returns whether a waiting call asks what the user was shown.
            answered_by: Name of the client, for the other followers of the task.
            message_id: Id of the answer; a repetition with the same id returns the first outcome again.
        """
        ...


class AgentClient(Protocol):
    """An agent, in this process or remote. Every method raises :class:`TaskError` for a request that it refuses."""

    async def prompt(self, message: PromptMessage) -> Turn:
        """Start a task, or continue one, with a user's message.

        A message to a task that is working waits until the current work ends.
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

        A repetition with the same ``message_id`` and answers is not a later answer: it returns the first outcome again.

        Args:
            task_id: The task that waits.
            confirmations: An answer for each of the calls that are answered, which may be some of those that wait.
            answered_by: Name of the surface or user that gives the answer, for the others who were asked.
            context_id: The conversation of the task, where the caller knows it.
            message_id: Id by which a repetition is recognised; empty if the answer is sent once.
        """
        ...

    async def follow(self, task_id: str, after: int | None = None) -> Turn:
        """Return the events after number ``after``, replayed and then live, or only live ones if it is None."""
        ...

    async def cancel(self, task_id: str) -> TaskSnapshot:
        """Stop the task and everything that it runs; return when that is recorded."""
        ...

    async def get(self, task_id: str, history_length: int | None = None) -> TaskSnapshot:
        """Return the task with at most ``history_length`` messages (None: a default); the agent may send fewer."""
        ...

    async def tasks(self, limit: int = 100) -> Sequence[TaskSnapshot]:
        """Return the tasks, most recently changed first, without history."""
        ...

    async def list_tasks(self, query: TaskQuery) -> TaskList:
        """Return a page of the tasks, without history."""
        ...

    async def commands(self, scope: CommandScope) -> Sequence[SlashCommand]:
        """Return the slash commands that can be executed in a scope, as a tree."""
        ...

    async def execute(self, command: CommandMessage) -> Execution:
        """Start a slash command as a task of its own, in the session of its scope or in a new one.

        A command that cannot be started raises no error: the Execution has FAILED_TO_START and the reason.
        """
        ...

    async def aclose(self) -> None:
        """Release all resources; tasks continue or wait as before."""
        ...
