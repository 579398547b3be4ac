"""What a client remembers of the tasks of a server that does not say it again.

A server of the dialect coderAgent tells a question once, and in no snapshot; it keeps a conversation per task and not
per context. Plain servers have no event ids, so that what was told is known by the decoder alone. Bounded: of the tasks
that were not touched for the longest time nothing is known any more.
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
T = TypeVar("T")


class RemoteTasks:
    """The tasks of one server. ``manner`` is what its card says, until its events say more."""

    def __init__(self, manner: ClientDialect, uri: str | None) -> None:
        self.manner = manner
        self._uri = uri
        self._decoders: OrderedDict[str, StreamDecoder] = OrderedDict()
        self._sessions: OrderedDict[str, str] = OrderedDict()

    @property
    def replays(self) -> bool:
        """The server may number its events, and then replays them."""
        return self.manner is ClientDialect.DEVELOPMENT_TOOL

    def decoder(self, task_id: str | None) -> StreamDecoder:
        """What reads the answer to a message: of a task that is known here, what has read it before."""
        found = self._decoders.get(task_id) if task_id is not None else None
        return found if found is not None else decoder_of(self.manner, self._uri)

    def watcher(self, task_id: str) -> StreamDecoder:
        """What reads a task beside others that do: it knows the calls that are open."""
        watcher = decoder_of(self.manner, self._uri)
        if (known := self._decoders.get(task_id)) is not None:
            watcher.know_calls(known)
        return watcher

    def remember(self, task_id: str, context_id: str, decoder: StreamDecoder) -> None:
        """This decoder reads the task."""
        if self.replays or not task_id:
            return
        _keep(self._decoders, task_id, decoder)
        if context_id:
            _keep(self._sessions, context_id, task_id)

    def learn(self, task_id: str, delivery: Delivery, decoder: StreamDecoder) -> None:
        """This has happened to the task."""
        if self.replays:
            return
        if isinstance(decoder, CoderAgentDecoder) and decoder.is_coder_agent:
            self.manner = ClientDialect.CODER_AGENT
        if isinstance(delivery.event, StateChange) and decoder.has_ended:
            self.forget_session(task_id)

    def forget_session(self, task_id: str) -> None:
        """The task takes no further message: the next one of its session begins another."""
        for context_id in [key for key, value in self._sessions.items() if value == task_id]:
            del self._sessions[context_id]

    def task_of_session(self, context_id: str | None) -> str | None:
        """Return the task that holds the conversation of a session, where it is a task's."""
        return self._sessions.get(context_id) if self.manner is ClientDialect.CODER_AGENT and context_id else None

    def require_open(self, snapshot: TaskSnapshot, confirmations: Sequence[ToolCallConfirmation]) -> None:
        """Hold answers to the questions that are open: such a server says nothing to others, ever.

        Raises:
            InvalidRequest: no such question is open, or this client was not told of it.
        """
        is_asked = snapshot.state is TaskState.INPUT_REQUIRED
        pending = {call.tool_call_id for call in snapshot.pending} if is_asked else set[str]()
        for confirmation in confirmations:
            if confirmation.tool_call_id not in pending:
                raise InvalidRequest(
                    f"task {snapshot.task_id} has no open question of a call {confirmation.tool_call_id!r} that this "
                    "client knows of; the server tells each question once, to the client that asked"
                )

    def completed(self, snapshot: TaskSnapshot) -> TaskSnapshot:
        """Return the snapshot with what is known here: the open questions, and whether a turn has just ended."""
        if self.manner is not ClientDialect.CODER_AGENT or snapshot.state is not TaskState.INPUT_REQUIRED:
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
