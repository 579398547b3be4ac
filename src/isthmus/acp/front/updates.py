"""The events of a task as updates of an ACP session. No I/O."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, assert_never

from isthmus.acp.front.tool_calls import call_state, fenced
from isthmus.acp.v1.content import ContentBlock, EmbeddedResource, ImageBlock, ResourceContents, ResourceLink, TextBlock
from isthmus.acp.v1.updates import (
    AgentMessageChunk,
    AgentThoughtChunk,
    CompactionUpdate,
    PlanEntry,
    PlanUpdate,
    SessionUpdate,
    ToolCallChanged,
    ToolCallStarted,
    ToolCallState,
    UserMessageChunk,
)
from isthmus.development_tool import AgentThought, ToolCall, ToolCallStatus
from isthmus.encoding.json_shapes import as_object, as_text
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    ArtifactUpdate,
    Command,
    ConfirmationAccepted,
    MessagePart,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from isthmus.internal_events import Compacted, InternalEvent
from isthmus.todo_list import Todo, TodoStatus, todos_of

_MEMBERS = tuple(field.name for field in fields(ToolCallState))


class UpdateEncoder:
    """Encodes the events of one session, task after task.

    ``own_messages`` are the ids of messages that the client itself has sent; they are not sent back. ``settings`` are
    the AgentSettings of all prompts so far, as far as their events have them.
    """

    def __init__(self, workspace: str) -> None:
        self.workspace = workspace
        self.own_messages: set[str] = set()
        self.settings: dict[str, Any] = {}
        self._calls: dict[str, ToolCallState] = {}
        self._ended: set[str] = set()
        """Ids of the calls that have ended, whose content is not kept."""

    def begin_replay(self) -> None:
        """Begin again: from now on the client is sent what it may have seen before."""
        self.own_messages.clear()
        self._calls.clear()
        self._ended.clear()

    def updates(self, event: AgentEvent) -> Iterator[SessionUpdate]:
        """Yield the updates for an event, in order; there may be none."""
        if isinstance(event, Prompt | Command):
            self.settings |= event.settings or {}
        match event:
            case TextContent(message_id, text, replaces):
                meta = {"isthmus": {"replacesMessageId": replaces}} if replaces is not None else None
                yield AgentMessageChunk(TextBlock(text), message_id, meta)
            case AgentMessage(message_id, text, was_streamed=False):
                yield AgentMessageChunk(TextBlock(text), message_id)
            case Thought(thought):
                yield AgentThoughtChunk(TextBlock(_thought_text(thought)))
            case ToolCallUpdate(call):
                yield from self.call(call)
            case Prompt(message_id):
                if message_id not in self.own_messages:
                    for part in event.content:
                        yield UserMessageChunk(block_of(part), message_id or None)
            case Command(message_id, path, args):
                if message_id not in self.own_messages:
                    yield UserMessageChunk(TextBlock(f"/{' '.join(path)} {args}".strip()), message_id or None)
            case ArtifactUpdate(artifact_id, parts):
                for part in parts:
                    yield AgentMessageChunk(block_of(part), artifact_id)
            case RetryNotice(reason=reason, is_offline=True) as notice:
                yield AgentThoughtChunk(TextBlock(f"{reason}; {notice.outlook}\n"))
            case RetryNotice(attempt, attempts, delay, reason):
                text = f"The model is asked again in {delay:.0f} s (attempt {attempt} of {attempts}): {reason}\n"
                yield AgentThoughtChunk(TextBlock(text))
            case StateChange(TaskState.FAILED | TaskState.REJECTED, str() as error):
                yield AgentMessageChunk(TextBlock(f"\n{error}\n"))
            case Compacted(summary):
                # The same summary has the same id, whenever the session is sent again.
                digest = hashlib.sha256(summary.encode("utf-8", "surrogatepass")).hexdigest()[:16]
                yield CompactionUpdate(f"compaction-{digest}", "completed", (TextBlock(summary),))
            case StateChange() | AgentMessage() | ConfirmationAccepted() | InternalEvent():
                pass
            case _:
                assert_never(event)

    def call(self, call: ToolCall) -> Iterator[SessionUpdate]:
        """Yield what is new of a tool call; nothing more after its end, unless another call has its id."""
        todos = todos_of(call)
        if todos is not None and call.status is ToolCallStatus.SUCCEEDED and call.tool_call_id not in self._ended:
            yield PlanUpdate(tuple(_plan_entry(todo) for todo in todos))
        if todos is not None and _is_plan_alone(call) and call.tool_call_id not in self._calls:
            if call.status.is_final:
                self._ended.add(call.tool_call_id)
            return
        if call.tool_call_id in self._ended:
            if call.status is not ToolCallStatus.PENDING:
                return
            self._ended.discard(call.tool_call_id)
        now = call_state(call, self.workspace)
        before = self._calls.get(call.tool_call_id)
        if before is not None and now.content is None:
            now = replace(now, content=before.content)  # what it wants to do is shown until there is a result
        if call.status.is_final:
            self._calls.pop(call.tool_call_id, None)
            self._ended.add(call.tool_call_id)
        else:
            self._calls[call.tool_call_id] = now
        stated: dict[str, Any] = {name: getattr(now, name) for name in _MEMBERS}
        if before is None:
            yield ToolCallStarted(**stated)
            return
        changed: dict[str, Any] = {name: value for name, value in stated.items() if value != getattr(before, name)}
        if changed:
            yield ToolCallChanged(call.tool_call_id, **changed)


def _is_plan_alone(call: ToolCall) -> bool:
    """Return whether a client needs only the plan that a call states, and not the call."""
    return call.confirmation_request is None and call.status not in (ToolCallStatus.FAILED, ToolCallStatus.CANCELLED)


def _plan_entry(todo: Todo) -> PlanEntry:
    # The protocol has no state for an entry that waits for something.
    status = TodoStatus.PENDING if todo.status is TodoStatus.BLOCKED else todo.status
    return PlanEntry(todo.description, status=status.value)


def _thought_text(thought: AgentThought) -> str:
    """Return a thought in Markdown. A subject that only repeats how the description begins is left out."""
    subject, description = thought.subject, thought.description
    if not subject or description.startswith(subject.removesuffix("…")):
        return f"{description}\n"
    return "\n".join(filter(None, (f"**{subject}**", description))) + "\n"


def replaced_message(update: SessionUpdate) -> str | None:
    """Return the id of the message that is void because of this update, if any."""
    meta = update.meta if isinstance(update, AgentMessageChunk) else None
    return as_text(as_object(as_object(meta).get("isthmus")).get("replacesMessageId")) or None


def block_of(part: MessagePart) -> ContentBlock:
    """Return a piece of a message or artifact as a content block."""
    kind, name = part.media_type or "", part.filename or "file"
    if part.text is not None:
        return TextBlock(part.text)
    if part.raw is not None and kind.startswith("image/"):
        return ImageBlock(part.raw, kind)
    if part.raw is not None:
        return EmbeddedResource(ResourceContents(f"attachment:{name}", kind or None, blob=part.raw))
    if part.url is not None:
        return ResourceLink(part.url, name, kind or None)
    return TextBlock(fenced(json.dumps(part.data, ensure_ascii=False, indent=2), "json"))
