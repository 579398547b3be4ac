"""A task right after one of its state changes, read from the journal, for push notifications in order.

Not here: the task now, see `snapshots`.
"""

from isthmus.client import Delivery, HistoryMessage, TaskSnapshot
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.engine.requests.asking import artifacts_of, history_of
from isthmus.events import ArtifactUpdate, ConfirmationAccepted, StateChange, TaskState, ToolCallUpdate
from isthmus.journal.port.base import Journal

_ROWS = 256
_MESSAGES = 8


async def snapshot_after(journal: Journal, task_id: str, delivery: Delivery, model: str = "") -> TaskSnapshot | None:
    """Return the task after ``delivery``, one of its recorded state changes; None if the task was deleted.

    The history is the last message of a completed task, otherwise empty. Artifacts are included when the stream ends.
    """
    row = await journal.task(task_id)
    change = delivery.event
    if row is None or not isinstance(change, StateChange) or delivery.seq is None:
        return None
    pending: tuple[ToolCall, ...] = ()
    if change.state.is_waiting:
        is_now = row.seq == delivery.seq and row.state is change.state
        pending = row.pending if is_now else await _pending_after(journal, task_id, delivery.seq)
    history: tuple[HistoryMessage, ...] = ()
    artifacts: tuple[ArtifactUpdate, ...] = ()
    if change.state is TaskState.COMPLETED:
        history = await _last_message(journal, task_id, delivery.seq)
    if change.state.ends_stream:
        artifacts = artifacts_of([item for item in await journal.artifacts(task_id) if (item.seq or 0) < delivery.seq])
    return TaskSnapshot(
        task_id=task_id,
        context_id=row.context_id,
        state=change.state,
        seq=delivery.seq,
        workspace=row.workspace,
        created_at=row.created_at,
        updated_at=delivery.at,
        title=row.title,
        model=model,
        error=change.error,
        reason=change.reason,
        pending=pending,
        history=history,
        artifacts=artifacts,
        parent=row.parent,
    )


async def _pending_after(journal: Journal, task_id: str, seq: int) -> tuple[ToolCall, ...]:
    """Return the calls that were waiting for a user after event ``seq``."""
    waiting: dict[str, ToolCall] = {}
    at = 0
    while deliveries := await journal.events(task_id, at, _ROWS):
        for delivery in deliveries:
            at = delivery.seq or at
            if at > seq:
                return tuple(waiting.values())
            match delivery.event:
                case ToolCallUpdate(call):
                    waiting.pop(call.tool_call_id, None)
                    if call.status is ToolCallStatus.PENDING and call.confirmation_request is not None:
                        waiting[call.tool_call_id] = call
                case ConfirmationAccepted(confirmation):
                    waiting.pop(confirmation.tool_call_id, None)
                case _:
                    pass
    return tuple(waiting.values())


async def _last_message(journal: Journal, task_id: str, seq: int) -> tuple[HistoryMessage, ...]:
    before = seq + 1
    while found := await journal.messages(task_id, _MESSAGES, before):
        if messages := history_of(found):
            return messages[-1:]
        before = found[0].seq or 0
    return ()
