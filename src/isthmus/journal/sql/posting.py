"""Messages of others for a task that runs or waits in the queue: whether its inbox takes them. No I/O.

:meth:`isthmus.journal.port.base.Journal.post` documents the rules.
"""

from collections.abc import Sequence

from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt
from isthmus.journal.port.base import RepeatedMessage, StaleLease
from isthmus.journal.port.task_rows import TaskRow
from isthmus.journal.sql.rows import check_inbox
from isthmus.record import record


@record
class PostFacts:
    """Knowledge of a task that posting depends on, besides that it runs or waits under the lease that its row has."""

    answers: Sequence[AgentEvent] = ()
    """Answers to its tool calls that came after its row was read, or wait in its inbox; read if an answer is posted."""
    messages: Sequence[AgentEvent] = ()
    """Events with the id of a posted message that came after the row was read, or wait in the inbox."""
    count: int = 0
    """Number of events in its inbox; read if a message is posted."""
    size: int = 0
    """Size of these events in characters."""


def answered_calls(events: Sequence[AgentEvent]) -> set[str]:
    """Return the ids of the tool calls that events answer."""
    return {event.confirmation.tool_call_id for event in events if isinstance(event, ConfirmationAccepted)}


def prompts_among(events: Sequence[AgentEvent]) -> Sequence[Prompt]:
    """Return the messages among events."""
    return [event for event in events if isinstance(event, Prompt)]


def check_post(row: TaskRow, events: Sequence[AgentEvent], bodies: Sequence[str], facts: PostFacts | None) -> None:
    """Check that a task takes events, which ``bodies`` has as they are stored.

    Without ``facts`` it neither runs nor waits under the lease that its row has.

    Raises:
        StaleLease: so it is, or one of its tool calls has been answered since the row was read.
        RepeatedMessage: a message with the same id and content has arrived since then.
        LimitReached: the inbox is full. Answers and cancellations alone do not count.
    """
    if facts is None:
        raise StaleLease(f"task {row.task_id} is not running or has a new owner; the message was not sent")
    if not answered_calls(events).isdisjoint(answered_calls(facts.answers)):
        raise StaleLease(f"a tool call of task {row.task_id} has been answered in the meantime")
    prompts = prompts_among(events)
    if any(prompt in facts.messages for prompt in prompts):
        raise RepeatedMessage(row.task_id)
    if prompts:
        check_inbox(row, facts.count, facts.size, bodies)
