"""Operations that a client requests from the server; the wire of every protocol version decodes into these.

:mod:`isthmus.a2a.service` and :mod:`isthmus.a2a.server.answering` perform them.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from isthmus.client import CommandMessage, CommandScope, PushTarget
from isthmus.development_tool import ToolCall, ToolCallConfirmation
from isthmus.encoding.codec import JsonObject
from isthmus.events import MessagePart, TaskState
from isthmus.record import record

POLLED = "polled"
"""Key in the stored settings of a task that a client without the extension began without waiting; it is our own."""
ResolveAnswers: TypeAlias = Callable[
    [Sequence[ToolCall], Sequence[ToolCallConfirmation]], tuple[ToolCallConfirmation, ...]
]
"""Function that returns answers with options of the calls; raises InvalidRequest if a call has no such option."""


@record
class SendMessage:
    """A message of the user: text that starts or continues a task, answers to its questions, or both at once.

    Fields without a description are as in :class:`~isthmus.client.PromptMessage`.
    """

    message_id: str
    text: str
    confirmations: tuple[ToolCallConfirmation, ...]
    """Answers to questions of the task."""
    task_id: str | None
    context_id: str | None
    settings: JsonObject | None
    """AgentSettings with an absolute ``workspace_path``, when the message has them."""
    stream: bool
    """Whether the client wants events as they happen; otherwise it receives the Task."""
    blocking: bool = True
    """Whether the Task is sent once the work has ended or a user is asked; otherwise at once."""
    history_length: int | None = None
    answered_by: str | None = None
    """Client's name for the place where its user answers."""
    push: PushTarget | None = None
    """Target of push notifications about the task."""
    may_continue_completed: bool = False
    requires_settings: bool = False
    answers_in_text: bool = True
    """Whether a text may answer the only open question."""
    resolve_answers: ResolveAnswers | None = None
    """Function for answers in a dialect's own words, which name no option of a question; None if they name options."""
    new_task_id: str | None = None
    parts: tuple[MessagePart, ...] = ()
    metadata: JsonObject | None = None
    extension: str = ""


@record
class GetTask:
    """Get a task with at most ``history_length`` messages."""

    task_id: str
    history_length: int | None = None


@record
class CancelTask:
    """Stop a task."""

    task_id: str


@record
class FollowTask:
    """Follow the events of a task."""

    task_id: str
    after: int | None = None
    """Number of the event after which the stream begins; None: it begins with the task, and continues from now on."""
    only_live: bool = False
    """Whether a task that has ended is refused, unless its events are replayed."""
    known: int = 0
    """Number of the last event that the client has; events up to it pass through the encoder but are not sent.

    ``after`` is then 0, for encoders that must see all events.
    """
    to_end: bool = False
    """Whether the stream continues while the task waits for a user, until the task ends."""


@record
class ListTasks:
    """List tasks, most recently changed first: those in ``context_id``, in ``state``, changed at ``since`` or later.

    ``page_token`` comes from the previous page. ``since`` is Unix time in seconds. Without ``history_length`` the tasks
    have no history.
    """

    limit: int = 100
    context_id: str | None = None
    state: TaskState | None = None
    since: float | None = None
    page_token: str | None = None
    history_length: int | None = None
    with_artifacts: bool = False


@record
class SetPush:
    """Send push notifications about a task to ``target``, which replaces a target with the same id."""

    task_id: str
    target: PushTarget


@record
class GetPush:
    """Get a push target of a task; the first one when no id is given."""

    task_id: str
    push_id: str | None = None


@record
class ListPushes:
    """List the push targets of a task."""

    task_id: str


@record
class DeletePush:
    """Delete a push target of a task."""

    task_id: str
    push_id: str


@record
class ListCommands:
    """List the slash commands, as a tree."""

    scope: CommandScope


@record
class GetSessionStatus:
    """Get the state of a session that no event tells."""

    scope: CommandScope


@record
class ExecuteCommand:
    """Run a slash command; with ``stream`` the events of its task follow the answer."""

    command: CommandMessage
    stream: bool = False


@record
class GetExtendedCard:
    """Get the agent card for authenticated clients."""


Operation: TypeAlias = (
    SendMessage
    | GetTask
    | CancelTask
    | FollowTask
    | ListTasks
    | SetPush
    | GetPush
    | ListPushes
    | DeletePush
    | ListCommands
    | GetSessionStatus
    | ExecuteCommand
    | GetExtendedCard
)


class PushService(Protocol):
    """Push targets of the tasks of one user. Every method raises TaskNotFound for a task that this user may not see.

    ``wire_name`` and ``uri`` say how notifications are written: the :attr:`~isthmus.a2a.wire.Wire.name` of the
    subscriber's wire, and the extension as the subscriber spells it (None: it does not speak the extension).
    """

    async def check(self, target: PushTarget) -> None:
        """Check that notifications may be sent to a target, before its task is created.

        Raises:
            InvalidRequest: this server does not send to the URL; the text has the reason.
        """
        ...

    async def set(
        self, task_id: str, target: PushTarget, wire_name: str, uri: str | None, *, after: int | None = None
    ) -> PushTarget:
        """Add a target, or replace the one with the same id; return it with an id, without its credentials.

        It receives the state changes after event ``after``. None means all from now on and, if the task has ended or
        waits for a user, also the last one: the client may have left before it arrived.

        Raises:
            InvalidRequest: this server does not send to the URL.
            LimitReached: the task has too many targets.
        """
        ...

    async def get(self, task_id: str, push_id: str | None = None) -> PushTarget:
        """Return a target, or the first one, without its credentials; raise TaskNotFound when there is none."""
        ...

    async def list(self, task_id: str) -> Sequence[PushTarget]:
        """Return all targets, oldest first, without their credentials."""
        ...

    async def delete(self, task_id: str, push_id: str) -> None:
        """Remove a target; a missing one is not an error."""
        ...
