"""Convert a server's Task to a TaskSnapshot; a server without the extension fills fewer fields. Sans-I/O."""

from collections.abc import Iterator

from isthmus.a2a.protocol.extension import envelope
from isthmus.a2a.protocol.items import MessageItem, TaskItem, optional_text, time_of
from isthmus.client import HistoryMessage, TaskSnapshot
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.encoding.codec import from_json
from isthmus.errors import DecodeError
from isthmus.events import TaskState
from isthmus.task_view import text_of_parts

FAILED_STATES = (TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED)


def snapshot_of(task: TaskItem, uri: str | None, seq: int | None = None) -> TaskSnapshot:
    """Return the snapshot that a Task describes. Fields that the server does not send are empty.

    ``seq`` is the id of the event that brought the Task.

    Raises:
        DecodeError: a question of the extension does not have the documented shape.
    """
    status = task.status
    extended = (envelope(task.metadata, uri) if uri else None) or {}
    kept = extended.get("seq")
    said = plain_text(status.message) if status.message is not None else ""
    return TaskSnapshot(
        task_id=task.task_id,
        context_id=task.context_id,
        state=status.state,
        seq=seq if seq is not None else kept if isinstance(kept, int) else 0,
        workspace=str(extended.get("workspace_path", "")),
        created_at=time_of(extended["created_at"]) if "created_at" in extended else status.at,
        updated_at=status.at,
        title=str(extended.get("title", "")),
        model=str(extended.get("model", "")),
        error=optional_text(extended.get("error")) or (said or None if status.state in FAILED_STATES else None),
        reason=optional_text(extended.get("reason")) or status.foreign,
        pending=() if status.state.is_terminal else tuple(pending_calls(status.message)),
        history=tuple(_history(task)),
        artifacts=tuple(artifact.update for artifact in task.artifacts),
        parent=str(extended.get("parent_task_id", "")),
    )


def pending_calls(message: MessageItem | None) -> Iterator[ToolCall]:
    """Yield the tool calls of a message that wait for a user.

    Raises:
        DecodeError: one does not have the documented shape.
    """
    for data in message.data if message is not None else ():
        if ("tool_call_id" in data or "toolCallId" in data) and "status" in data:
            call = from_json(ToolCall, data)
            if call.status is ToolCallStatus.PENDING:
                yield call


def plain_text(message: MessageItem) -> str:
    """Return the text parts of a message, joined."""
    return "".join(part.text for part in message.parts if part.text is not None)


def all_text(message: MessageItem) -> str:
    """Return everything in a message as text, but only the text parts of a message with tool calls."""
    try:
        if any(True for _ in pending_calls(message)):
            return plain_text(message)
    except DecodeError:
        pass
    return message.text


def _history(task: TaskItem) -> Iterator[HistoryMessage]:
    seen: set[str] = set()
    for message in task.history:
        yield from _unseen_text(message, seen)
    is_ended = task.status.state is TaskState.COMPLETED
    for artifact in task.artifacts:
        if text := text_of_parts(artifact.parts):
            yield HistoryMessage(artifact.artifact_id, "agent", text)
    if is_ended and task.status.message is not None:
        yield from _unseen_text(task.status.message, seen)


def _unseen_text(message: MessageItem, seen: set[str]) -> Iterator[HistoryMessage]:
    text = plain_text(message)
    if text and not (message.message_id and message.message_id in seen):
        seen.add(message.message_id)
        yield HistoryMessage(message.message_id, message.role, text)
