"""Port to the tasks of subagents, which the engine implements."""

import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from isthmus.client import Delivery
from isthmus.development_tool import ToolCallConfirmation
from isthmus.errors import IsthmusError
from isthmus.record import record

_NAMESPACE = uuid.UUID("6f7d0c6e-2f0b-4c8e-9d5a-6a1b8c1e5a77")


def child_task_id(parent_task_id: str, call_id: str) -> str:
    """Return the id of the task that a call of ``parent_task_id`` begins."""
    return str(uuid.uuid5(_NAMESPACE, f"{parent_task_id}\0{call_id}"))


class ChildTaskError(IsthmusError):
    """The task of a subagent cannot begin or go on."""


@record
class NewSubagent:
    """The subagent of a new task, and its prompt. Fields as in :class:`isthmus.internal_events.SubagentBegun`.

    ``model`` is a name as in ``--model``; None for the model of the session that begins it. ``only_plans``: it works in
    the approval mode ``plan``, otherwise in that of the session.
    """

    name: str
    instructions: str
    prompt: str
    tools: tuple[str, ...] | None = None
    refused_tools: tuple[str, ...] = ()
    model: str | None = None
    max_turns: int | None = None
    only_plans: bool = False


class ChildTasks(Protocol):
    """The tasks that calls of other tasks have begun."""

    async def begin(self, parent_task_id: str, call_id: str, subagent: NewSubagent) -> str:
        """Create the task of a call, unless that call has one already, and return its id.

        Raises:
            ChildTaskError: the parent has begun too many, or the journal is full.
        """
        ...

    def follow(self, task_id: str) -> AsyncGenerator[Delivery, None]:
        """Yield the events of a task from its first one on, until it has ended or waits for the user.

        Raises:
            TaskNotFound: it was deleted.
        """
        ...

    async def open_questions(self, parent_task_id: str, call_id: str) -> Sequence[str]:
        """Return the ids of the calls with which the task of a call waits for the user, also while others of it run."""
        ...

    async def answer(self, task_id: str, confirmation: ToolCallConfirmation) -> None:
        """Answer a question of a task; without effect if it does not wait for this answer any more."""
        ...

    async def cancel(self, parent_task_id: str, call_id: str) -> None:
        """Cancel the task of a call, if there is one that has not ended."""
        ...
