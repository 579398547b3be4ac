"""What a client asks of the server, free of protocol versions: each wire module decodes into these.

Deliberately not here: how it is met (:mod:`isthmus.a2a.service`) and how the answer is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from isthmus.client import CommandMessage, CommandScope, PushTarget
from isthmus.development_tool import ToolCallConfirmation
from isthmus.encoding.codec import JsonObject
from isthmus.events import MessagePart, TaskState


@dataclass(frozen=True, slots=True)
class SendMessage:
    """A message of the user: text that starts or continues a task, or answers to its questions, never both.

    ``settings`` are AgentSettings with an absolute ``workspace_path``, when the message has them. ``stream`` asks for
    the events as they happen, else for the Task: once the work rests (``blocking``) or at once. ``answered_by`` is
    how the client calls the place where the user sits. ``push`` is where news of the task shall go from now on.

    The rest is what the client's way of speaking allows: ``may_continue_completed`` and ``requires_settings`` as in
    :class:`~isthmus.client.PromptMessage`; with ``answers_in_text`` a text may answer the one question that waits;
    with ``options_are_outcomes`` the answers are outcomes of the dialect ``coderAgent``, and the question decides which
    of its options each one is. ``new_task_id``, ``parts`` and ``metadata`` as in PromptMessage.
    """

    message_id: str
    text: str
    confirmations: tuple[ToolCallConfirmation, ...]
    task_id: str | None
    context_id: str | None
    settings: JsonObject | None
    stream: bool
    blocking: bool = True
    history_length: int | None = None
    answered_by: str | None = None
    push: PushTarget | None = None
    may_continue_completed: bool = False
    requires_settings: bool = False
    answers_in_text: bool = True
    options_are_outcomes: bool = False
    new_task_id: str | None = None
    parts: tuple[MessagePart, ...] = ()
    metadata: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class GetTask:
    """The task as it stands, with at most ``history_length`` messages."""

    task_id: str
    history_length: int | None = None


@dataclass(frozen=True, slots=True)
class CancelTask:
    """Stop the task."""

    task_id: str


@dataclass(frozen=True, slots=True)
class FollowTask:
    """What happens to the task: after event ``after``, or from now on with the task first.

    ``only_live`` refuses a task that has ended, as nothing can happen to it any more; replaying is always possible.
    ``known`` is up to where the client has the events itself: they go to the encoder, which must see them all, and not
    out; ``after`` is 0 then. ``to_end`` goes on while the task waits for a user, until it has ended.
    """

    task_id: str
    after: int | None = None
    only_live: bool = False
    known: int = 0
    to_end: bool = False


@dataclass(frozen=True, slots=True)
class ListTasks:
    """The tasks, most recently changed first: those in ``context_id``, in ``state``, changed at ``since`` or later.

    ``page_token`` is of the page before. ``since`` is Unix time in seconds. Without ``history_length`` there is no
    history.
    """

    limit: int = 100
    context_id: str | None = None
    state: TaskState | None = None
    since: float | None = None
    page_token: str | None = None
    history_length: int | None = None
    with_artifacts: bool = False


@dataclass(frozen=True, slots=True)
class SetPush:
    """Send news of the task to ``target`` from now on; one of the same id is replaced."""

    task_id: str
    target: PushTarget


@dataclass(frozen=True, slots=True)
class GetPush:
    """One target of the task; the first one when no id is given."""

    task_id: str
    push_id: str | None = None


@dataclass(frozen=True, slots=True)
class ListPushes:
    """All targets of the task."""

    task_id: str


@dataclass(frozen=True, slots=True)
class DeletePush:
    """Send nothing there any more."""

    task_id: str
    push_id: str


@dataclass(frozen=True, slots=True)
class ListCommands:
    """The slash commands, as a tree."""

    scope: CommandScope


@dataclass(frozen=True, slots=True)
class ExecuteCommand:
    """Run a slash command; with ``stream`` the answer is followed by the events of its task."""

    command: CommandMessage
    stream: bool = False


@dataclass(frozen=True, slots=True)
class GetExtendedCard:
    """The card for those who have a token."""


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
    | ExecuteCommand
    | GetExtendedCard
)


class PushService(Protocol):
    """Where news of tasks are sent. Every method raises TaskNotFound for a task that the asker may not see.

    ``wire_name`` and ``uri`` say how the subscriber reads: the :attr:`~isthmus.a2a.wire.Wire.name` of its wire, and
    its spelling of the extension's URI (None: it does not speak it).
    """

    async def check(self, target: PushTarget) -> None:
        """Whether news may be sent there, before a task is made that they are of.

        Raises:
            InvalidRequest: the URL is none that this server sends to.
        """
        ...

    async def set(
        self, task_id: str, target: PushTarget, wire_name: str, uri: str | None, *, after: int | None = None
    ) -> PushTarget:
        """Add a target, or replace the one of its id; returned with an id.

        What comes after event ``after`` is sent, or from now on when it is None.

        Raises:
            InvalidRequest: the URL is none that this server sends to.
        """
        ...

    async def get(self, task_id: str, push_id: str | None = None) -> PushTarget:
        """One target, or the first; TaskNotFound when there is none."""
        ...

    async def list(self, task_id: str) -> Sequence[PushTarget]:
        """All targets, oldest first."""
        ...

    async def delete(self, task_id: str, push_id: str) -> None:
        """Remove a target; one that is not there is no error."""
        ...
