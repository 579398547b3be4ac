"""A client's memory of tasks, for servers that do not send everything twice.

A server of the dialect coderAgent sends a question once, and in no Task; it keeps a conversation per task and not per
context. Servers without the extension have no event ids, so that only the decoder knows what was delivered. The memory
is bounded; the least recently used tasks are forgotten.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from isthmus.a2a.client.dialects import decoder_of
from isthmus.a2a.client.discovery import ClientDialect
from isthmus.a2a.coder_agent.decoder import CoderAgentDecoder
from isthmus.a2a.protocol.stream_decoder import StreamDecoder
from isthmus.client import Delivery, InvalidRequest, TaskSnapshot
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import StateChange, TaskState

MAX_TASKS = 512
"""Maximum number of tasks, and of sessions, that are remembered."""
T = TypeVar("T")


class RemoteTasks:
    """The tasks of one server. ``dialect`` comes from its card, until its events show another one."""

    def __init__(self, dialect: ClientDialect, uri: str | None) -> None:
        self.dialect = dialect
        self._uri = uri
        self._decoders: OrderedDict[str, StreamDecoder] = OrderedDict()
        self._sessions: OrderedDict[str, str] = OrderedDict()

    @property
    def replays(self) -> bool:
        """Whether the server may number its events and replay them."""
        return self.dialect is ClientDialect.DEVELOPMENT_TOOL

    def decoder(self, task_id: str | None) -> StreamDecoder:
        """Return a decoder for the answer to a message: the one that has read the task before, or a new one."""
        found = self._decoders.get(task_id) if task_id is not None else None
        return found if found is not None else decoder_of(self.dialect, self._uri)

    def watcher(self, task_id: str) -> StreamDecoder:
        """Return a decoder that reads a task in addition to others; it knows the open calls."""
        watcher = decoder_of(self.dialect, self._uri)
        if (known := self._decoders.get(task_id)) is not None:
            watcher.copy_calls(known)
        return watcher

    def remember(self, task_id: str, context_id: str, decoder: StreamDecoder) -> None:
        """Remember the decoder that reads a task."""
        if self.replays or not task_id:
            return
        _keep(self._decoders, task_id, decoder)
        if context_id:
            _keep(self._sessions, context_id, task_id)

    def record(self, task_id: str, delivery: Delivery, decoder: StreamDecoder) -> None:
        """Update the memory after an event of a task."""
        if self.replays:
            return
        if isinstance(decoder, CoderAgentDecoder) and decoder.is_coder_agent:
            self.dialect = ClientDialect.CODER_AGENT
        if isinstance(delivery.event, StateChange) and decoder.has_ended:
            self.forget_session(task_id)

    def forget_session(self, task_id: str) -> None:
        """Forget the session of a task that takes no further message; its next message begins another task."""
        for context_id in [key for key, value in self._sessions.items() if value == task_id]:
            del self._sessions[context_id]

    def task_of_session(self, context_id: str | None) -> str | None:
        """Return the task that has the conversation of a session, in the dialect coderAgent."""
        return self._sessions.get(context_id) if self.dialect is ClientDialect.CODER_AGENT and context_id else None

    def require_open(self, snapshot: TaskSnapshot, confirmations: Sequence[ToolCallConfirmation]) -> None:
        """Check that answers belong to open questions; a server of the dialect never replies to other answers.

        Raises:
            InvalidRequest: a question is not open, or this client has not received it.
        """
        is_asked = snapshot.state is TaskState.INPUT_REQUIRED
        pending = {call.tool_call_id for call in snapshot.pending} if is_asked else set[str]()
        for confirmation in confirmations:
            if confirmation.tool_call_id not in pending:
                raise InvalidRequest(
                    f"this client knows no open question of the call {confirmation.tool_call_id!r} in task "
                    f"{snapshot.task_id}; the server sends each question once, to the client that began the work"
                )

    def complete(self, snapshot: TaskSnapshot) -> TaskSnapshot:
        """Return the snapshot with the open questions; without any a turn that waits for input is completed."""
        if self.dialect is not ClientDialect.CODER_AGENT or snapshot.state is not TaskState.INPUT_REQUIRED:
            return snapshot
        decoder = self._decoders.get(snapshot.task_id)
        calls = decoder.open_calls if decoder is not None else ()
        pending = tuple(call for call in calls if call.confirmation_request is not None)
        return replace(snapshot, pending=pending) if pending else replace(snapshot, state=TaskState.COMPLETED)


def _keep(kept: OrderedDict[str, T], key: str, value: T) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > MAX_TASKS:
        kept.popitem(last=False)
