"""What a client asks of the server, free of protocol versions: each wire module decodes into these.

Deliberately not here: how it is met (:mod:`isthmus.a2a.service`) and how the answer is written.
"""

from dataclasses import dataclass
from typing import TypeAlias

from isthmus.events import JsonObject, ToolCallConfirmation


@dataclass(frozen=True, slots=True)
class SendMessage:
    """A message of the person: text that starts or continues a task, or answers to its questions, never both.

    ``settings`` are AgentSettings with an absolute ``workspace_path``, when the message has them. ``stream`` asks for
    the events as they happen, else for the Task: once the work rests (``blocking``) or at once. ``answered_by`` is
    how the client calls the place where the person sits.
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
    """What happens to the task: after event ``after``, or from now on with the task first."""

    task_id: str
    after: int | None = None


@dataclass(frozen=True, slots=True)
class ListTasks:
    """The tasks, most recently changed first."""

    limit: int = 100


Operation: TypeAlias = SendMessage | GetTask | CancelTask | FollowTask | ListTasks
