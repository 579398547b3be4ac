"""Decoder that turns the items of one task's streams, from any A2A server, into AgentEvents. Sans-I/O.

``StreamDecoder`` reads texts, artifacts, messages and states, which every server has. Its subclasses read the extension
(:mod:`isthmus.a2a.protocol.development_tool_decoder`) and the dialect ``coderAgent``
(:mod:`isthmus.a2a.coder_agent.decoder`). :mod:`isthmus.a2a.client.streams` reconnects.
"""

import time
from collections.abc import Iterable, Iterator

from isthmus.a2a.protocol.items import ArtifactItem, Item, MessageItem, StatusItem, TaskItem
from isthmus.a2a.protocol.snapshots import FAILED_STATES, all_text, pending_calls, plain_text
from isthmus.client import MISSED_EVENTS, Delivery
from isthmus.development_tool import ToolCall
from isthmus.errors import DecodeError
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    ArtifactUpdate,
    Prompt,
    StateChange,
    TaskState,
    TextContent,
    ToolCallUpdate,
)


class StreamDecoder:
    """Decodes the items of one task's streams, in order, over any number of connections; yields each event once.

    Servers that number their events replay those that were missed. For other servers the texts and artifacts of a Task
    are compared with those delivered before, by the ids of messages and artifacts, and only the rest is delivered.
    """

    def __init__(self, state: TaskState | None = None) -> None:
        self._state = state
        self._calls: dict[str, ToolCall] = {}
        self._ended: set[str] = set()
        self._delivered_texts: dict[str, tuple[int, str]] = {}
        self._artifacts: dict[str, int] = {}
        self._has_missed = False
        self.is_final = False
        """Whether the last item announced the end of the stream."""
        self.yields_prompts = False
        """Whether the user's messages are events, too, for who follows a task without having sent them."""
        self.has_ended = False
        """Whether the server reports the task as ended; any other task can continue."""

    @property
    def at_rest(self) -> bool:
        """Whether the work has ended or a user is asked: a stream that ends now is complete."""
        return self._state is not None and self._state.ends_stream

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls that have not ended, as the server last sent them."""
        return tuple(self._calls.values())

    def begin(self, state: TaskState) -> None:
        """Begin with another stream of the task, which is now in ``state``."""
        self._state, self.is_final = state, False

    def mark_delivered(self, task: TaskItem) -> None:
        """Treat everything that a Task contains as delivered."""
        for message in (*task.history, task.status.message):
            if message is not None and message.message_id:
                text = self._text(message)
                self._delivered_texts[message.message_id] = len(text), text
        for artifact in task.artifacts:
            self._artifacts[artifact.artifact_id] = len(artifact.parts)

    def copy_calls(self, other: "StreamDecoder") -> None:
        """Take over the tool calls that another decoder of the same task has seen."""
        self._calls.update(other._calls)
        self._ended |= other._ended

    def resumed(self) -> None:
        """Note that the stream was resumed on a server that does not replay, so that events may be missing."""
        self._has_missed = True

    def decode(self, item: Item, seq: int | None) -> list[Delivery]:
        """Return the deliveries of one item.

        Raises:
            DecodeError: an object of the extension in it does not have the documented shape.
        """
        at = time.time()
        if isinstance(item, StatusItem | TaskItem):
            at, self.has_ended = item.status.at, item.status.state.is_terminal
        match item:
            case StatusItem():
                events = list(self._status(item, seq))
                self.is_final = item.is_final
            case ArtifactItem():
                events = list(self._artifact(item))
            case TaskItem():
                events = list(self._task(item, seq))
                self.is_final = False
            case MessageItem():
                events = [*self._whole_message(item), StateChange(TaskState.COMPLETED)]
                self._state, self.is_final = TaskState.COMPLETED, True
        # The id of an item goes with its last event, so that resuming after it skips none.
        last = len(events) - 1
        return [Delivery(seq if index == last else None, at, event) for index, event in enumerate(events)]

    # --- Overridden by subclasses -----------------------------------------------------------------------------------

    def _status(self, item: StatusItem, seq: int | None) -> Iterator[AgentEvent]:
        """Yield the events of a status update."""
        yield from self._plain_status(item, seq)

    def _state_of(self, item: StatusItem | TaskItem) -> TaskState:
        """Return the state of the task that an item reports."""
        return item.status.state

    def _text(self, message: MessageItem) -> str:
        """Return the text of a message."""
        return all_text(message)

    def _questions(self, message: MessageItem | None) -> Iterable[ToolCall]:
        """Return the tool calls of a message that ask the user."""
        try:
            return tuple(pending_calls(message))
        except DecodeError:
            return ()

    def _artifact(self, item: ArtifactItem) -> Iterator[AgentEvent]:
        known = self._artifacts.get(item.artifact_id, 0) if item.append else 0
        self._artifacts[item.artifact_id] = known + len(item.parts)
        yield item.update

    # --- Shared -----------------------------------------------------------------------------------------------------

    def _plain_status(self, item: StatusItem, seq: int | None) -> Iterator[AgentEvent]:
        state, message = self._state_of(item), item.status.message
        calls = self._questions(message)
        yield from self._unseen(calls)
        is_failed = state in FAILED_STATES
        if not calls and not is_failed:
            yield from self._texts(message, seq)
        if state is not self._state:
            self._state = state
            error = self._text(message) or None if is_failed and message is not None else None
            yield StateChange(state, error, item.status.foreign)

    def _task(self, item: TaskItem, seq: int | None) -> Iterator[AgentEvent]:
        state, message = self._state_of(item), item.status.message
        is_failed = state in FAILED_STATES
        questions = self._questions(message) if not state.is_terminal else ()
        if seq is None:
            yield from self._undelivered(item, has_text=not is_failed and not questions)
        elif self.yields_prompts and state is TaskState.SUBMITTED:  # the task as it was when a message of the user came
            prompts = [Prompt(each.message_id, self._text(each)) for each in item.history if each.role == "user"]
            if prompts:  # which imply the state, whatever the task's state was when following began
                self._state = state
                yield from prompts
                return
        yield from self._unseen(questions)
        missed, self._has_missed = self._has_missed and seq is None, False
        if state is not self._state or missed:
            self._state = state
            error = plain_text(message) or None if is_failed and message is not None else None
            yield StateChange(state, error, MISSED_EVENTS if missed else item.status.foreign)

    def _undelivered(self, task: TaskItem, *, has_text: bool) -> Iterator[AgentEvent]:
        """Yield the content of a Task that was not delivered before."""
        for message in task.history:
            if message.role == "agent" and message.message_id:
                yield from self._undelivered_text(message)
        for artifact in task.artifacts:
            if artifact.artifact_id in self._delivered_texts:
                continue  # the same text as the message with this id
            known = self._artifacts.get(artifact.artifact_id, 0)
            if artifact.artifact_id not in self._artifacts:
                yield from self._artifact(artifact)
            elif len(artifact.parts) > known:
                self._artifacts[artifact.artifact_id] = len(artifact.parts)
                name, rest = artifact.name, artifact.parts[known:]
                yield ArtifactUpdate(artifact.artifact_id, rest, name, artifact.description, append=True)
        if has_text and task.status.message is not None:
            yield from self._undelivered_text(task.status.message)

    def _undelivered_text(self, message: MessageItem) -> Iterator[AgentEvent]:
        """Yield the text of a message that was not delivered before, neither as text nor as an artifact of its id."""
        if message.message_id in self._artifacts:
            return
        text = self._text(message)
        delivered, _ = self._delivered_texts.get(message.message_id, (0, ""))
        if len(text) > delivered:
            self._delivered_texts[message.message_id] = len(text), text
            yield TextContent(message.message_id or "text", text[delivered:])

    def _texts(
        self, message: MessageItem | None, seq: int | None, *, are_increments: bool = False
    ) -> Iterator[TextContent]:
        """Yield more text. Without event ids the same text of the same message is a repetition, and is dropped."""
        text = self._text(message) if message is not None else ""
        if message is None or not text:
            return
        if seq is None and message.message_id:
            delivered, last = self._delivered_texts.get(message.message_id, (0, ""))
            if last == text and not are_increments:
                return
            self._delivered_texts[message.message_id] = delivered + len(text), text
        yield TextContent(message.message_id or "text", text)

    def _whole_message(self, message: MessageItem) -> Iterator[AgentEvent]:
        if text := self._text(message):
            yield AgentMessage(message.message_id or "message", text)

    def _unseen(self, calls: Iterable[ToolCall]) -> Iterator[ToolCallUpdate]:
        for call in calls:
            if self._calls.get(call.tool_call_id) != call:
                yield self._call(call)

    def _call(self, call: ToolCall) -> ToolCallUpdate:
        if call.status.is_final:
            self._calls.pop(call.tool_call_id, None)
            self._ended.add(call.tool_call_id)
        else:
            self._calls[call.tool_call_id] = call
        return ToolCallUpdate(call)
