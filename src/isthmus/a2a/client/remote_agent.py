"""RemoteAgent, the AgentClient for an agent behind an A2A server; programs use it to drive any A2A agent.

It speaks A2A 0.3 and 1.0, with the development-tool extension, the dialect of gemini-cli-a2a-server, or neither. HTTP
is in :mod:`isthmus.a2a.client.connection`. No code of our own agent may be imported here.
"""

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from isthmus.a2a.client.answers import RemoteError
from isthmus.a2a.client.commands import RemoteCommands
from isthmus.a2a.client.connection import AgentConnection
from isthmus.a2a.client.dialects import answer_parts, settings_metadata
from isthmus.a2a.client.discovery import ClientDialect, ServerProfile
from isthmus.a2a.client.memory import RemoteTasks
from isthmus.a2a.client.retry import StreamRetryPolicy, read_until_answered, send_until_arrived
from isthmus.a2a.client.streams import (
    FollowedSource,
    ItemSource,
    Numbered,
    PolledSource,
    TaskReader,
    decode_item,
    decode_task,
    first_item,
    open_source,
)
from isthmus.a2a.client.wires import OutgoingMessage
from isthmus.a2a.protocol.items import MessageItem, TaskItem, object_of, objects_of, optional_text
from isthmus.a2a.protocol.snapshots import snapshot_of
from isthmus.a2a.protocol.stream_decoder import StreamDecoder
from isthmus.client import (
    MISSED_EVENTS,
    AgentClient,
    CommandMessage,
    CommandScope,
    Delivery,
    Execution,
    InvalidRequest,
    PromptMessage,
    PushTarget,
    SessionStatusProvider,
    TaskList,
    TaskNotResumable,
    TaskQuery,
    TaskSnapshot,
    Turn,
    select_tasks,
)
from isthmus.development_tool import SlashCommand, ToolCallConfirmation
from isthmus.errors import DecodeError
from isthmus.events import MessagePart, StateChange, TaskState
from isthmus.rpc.messages import METHOD_NOT_FOUND, RpcError
from isthmus.session_status import SessionStatus

__all__ = ["RemoteAgent", "StreamRetryPolicy"]

LISTED_TASKS = 1000
"""Maximum number of a server's tasks, the most recently changed ones, that a query searches."""


class RemoteAgent(AgentClient, SessionStatusProvider):
    """An agent behind an A2A server; create one with :meth:`connect`.

    A broken stream is resumed. Tasks that a server does not stream are polled, and events that it does not replay are
    read from its Task; if some may still be missing, a state change with the reason ``missed-events`` reports it. On a
    server that does not replay, :meth:`follow` always begins with the next event.

    A server of the dialect coderAgent keeps a conversation per task: a message to a session goes to its last task. A2A
    0.3 has no method to list tasks, so :meth:`tasks` uses our own, ``isthmus/tasks``, and raises InvalidRequest on a
    server that does not have it.
    """

    def __init__(self, connection: AgentConnection, retry_policy: StreamRetryPolicy) -> None:
        self._connection = connection
        self._retry_policy = retry_policy
        self._memory = RemoteTasks(connection.profile.dialect, connection.activation.uri)
        self._commands = RemoteCommands(connection, retry_policy, self._memory)

    @classmethod
    async def connect(
        cls,
        url: str,
        token: str | None = None,
        *,
        deadline: float = 60,
        retry_policy: StreamRetryPolicy | None = None,
        protocol: str | None = None,
        binding: str | None = None,
        ca_file: Path | None = None,
    ) -> "RemoteAgent":
        """Connect to the server at ``url``. ``deadline`` is the maximum time in seconds without data from the server.

        ``protocol`` (``0.3`` or ``1.0``) and ``binding`` (``JSONRPC`` or ``HTTP+JSON``) choose among what the server
        offers; by default the best is used. ``ca_file`` (PEM) holds the authorities to trust instead of the usual ones.

        Raises:
            RemoteError: the server is not reachable, refuses the token, or does not speak A2A as this client does.
            IncompatibleExtensionError: it speaks an incompatible version of the extension.
        """
        connection = await AgentConnection.open(
            url, token, deadline=deadline, protocol=protocol, binding=binding, ca_file=ca_file
        )
        return cls(connection, retry_policy or StreamRetryPolicy())

    @property
    def url(self) -> str:
        """URL that requests are sent to."""
        return self._connection.url

    @property
    def name(self) -> str:
        """Name of the agent in its card."""
        return self._connection.profile.name

    @property
    def protocol(self) -> str:
        """Version of A2A in use: ``0.3`` or ``1.0``."""
        return self._connection.wire.version

    @property
    def profile(self) -> ServerProfile:
        """Profile of the server from its card."""
        return self._connection.profile

    @property
    def dialect(self) -> ClientDialect:
        """Dialect of the server, as far as it is known."""
        return self._memory.dialect

    @override
    async def prompt(self, message: PromptMessage, *, push: PushTarget | None = None) -> Turn:
        task_id = message.task_id or self._memory.task_of_session(message.context_id)
        known = await self._known(task_id) if task_id is not None else None
        if known is not None and known.status.state.is_terminal and self._memory.dialect is ClientDialect.CODER_AGENT:
            # The server would accept the message and never answer.
            if message.task_id is not None:
                raise TaskNotResumable(f"task {task_id} is {known.status.state.value} and takes no further message")
            self._memory.forget_session(known.task_id)
            task_id = known = None
        decoder = self._memory.decoder(task_id)
        if known is not None:
            decoder.mark_delivered(known)
        metadata = settings_metadata(self._memory.dialect, self._uri, message.settings)
        outgoing = OutgoingMessage(
            message.message_id or str(uuid.uuid4()),
            message.parts or (MessagePart(text=message.text),),
            task_id,
            message.context_id or (known.context_id if known is not None else None),
            {**(message.metadata or {}), **(metadata or {})} or None,
            push,
        )
        return await self._send(outgoing, known, decoder)

    @override
    async def answer(
        self,
        task_id: str,
        confirmations: Sequence[ToolCallConfirmation],
        *,
        answered_by: str,
        context_id: str | None = None,
        message_id: str = "",
    ) -> Turn:
        parts = answer_parts(self._memory.dialect, confirmations)
        known = await self._known(task_id)
        if self._memory.dialect is ClientDialect.CODER_AGENT:
            self._memory.require_open(self._snapshot(known), confirmations)
        metadata = {self._uri: {"answered_by": answered_by}} if self._uri is not None else None
        outgoing = OutgoingMessage(
            message_id or str(uuid.uuid4()), parts, task_id, context_id or known.context_id, metadata
        )
        return await self._send(outgoing, known, self._memory.decoder(task_id))

    @override
    async def follow(self, task_id: str, after: int | None = None) -> Turn:
        decoder = self._memory.watcher(task_id)
        if self._memory.replays and after is not None:
            known = self._snapshot(await self._get(task_id, None))
            decoder.begin(known.state)
            decoder.yields_prompts = True
            source = await open_source(self._connection, self._connection.wire.follow(task_id), after)
            # If there is nothing to replay, the stream of a task that has ended or waits is empty.
            return self._turn(source, decoder, known, after, () if after >= known.seq else None)
        source = FollowedSource(self._connection, task_id, self._retry_policy)
        first = await first_item(source, self.url)
        return await self._begun(source, first, decoder, is_new=False, tells_state=after is not None)

    @override
    async def cancel(self, task_id: str) -> TaskSnapshot:
        result = await self._connection.call(self._connection.wire.cancel(task_id))
        self._memory.forget_session(task_id)
        return self._snapshot(decode_task(self._connection, result))

    @override
    async def get(self, task_id: str, history_length: int | None = None) -> TaskSnapshot:
        snapshot = self._snapshot(await self._get(task_id, history_length))
        if history_length is None:
            return snapshot
        # The final text is in the task's status, even if no history is requested.
        return replace(snapshot, history=snapshot.history[max(len(snapshot.history) - history_length, 0) :])

    @override
    async def tasks(self, limit: int = 100) -> Sequence[TaskSnapshot]:
        listed: list[TaskSnapshot] = []
        token = ""
        while len(listed) < limit:
            page, token = await self._page_of_tasks(limit - len(listed), token)
            listed += page
            if not token or not page:
                break
        return listed[:limit]

    @override
    async def list_tasks(self, query: TaskQuery) -> TaskList:
        return select_tasks(await self.tasks(LISTED_TASKS), query)

    async def _page_of_tasks(self, limit: int, token: str) -> tuple[Sequence[TaskSnapshot], str]:
        """Return at most ``limit`` tasks and the token of the next page, which is empty on the last one."""
        try:
            result = await self._connection.call(self._connection.wire.tasks(limit, token))
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            raise InvalidRequest(f"{self.url} cannot list its tasks; give the id of a task") from error
        try:
            found = object_of(result, "tasks")
            # 1.0 omits an empty list.
            is_complete = "tasks" in found or self.protocol == "1.0"
            if not is_complete or not isinstance(found.get("tasks", []), list):
                raise DecodeError("tasks", "a list", found.get("tasks"))
        except DecodeError as error:
            raise RemoteError(f"expected a list of tasks from {self.url}: {error}") from error
        listed = (decode_task(self._connection, item) for item in objects_of(found.get("tasks")))
        return [self._snapshot(item) for item in listed], optional_text(found.get("nextPageToken")) or ""

    @override
    async def commands(self, scope: CommandScope) -> Sequence[SlashCommand]:
        return await self._commands.list(scope)

    @override
    async def session_status(self, scope: CommandScope) -> SessionStatus:
        return await self._commands.status(scope)

    @override
    async def execute(self, command: CommandMessage) -> Execution:
        return await self._commands.execute(command)

    # --- Push notifications -----------------------------------------------------------------------------------------

    async def set_push(self, task_id: str, target: PushTarget) -> PushTarget:
        """Have push notifications about a task sent to a target; return it with its id.

        Raises:
            InvalidRequest: the server refuses the target, or does not send push notifications.
        """
        return self._push(await self._connection.call(self._connection.wire.set_push(task_id, target)))

    async def get_push(self, task_id: str, push_id: str) -> PushTarget:
        """Return a push target of a task."""
        return self._push(await self._connection.call(self._connection.wire.get_push(task_id, push_id)))

    async def list_push(self, task_id: str) -> Sequence[PushTarget]:
        """Return all push targets of a task."""
        result = await self._connection.call(self._connection.wire.list_push(task_id))
        try:
            return self._connection.wire.decode_pushes(result)
        except DecodeError as error:
            raise RemoteError(f"expected push targets from {self.url}: {error}") from error

    async def delete_push(self, task_id: str, push_id: str) -> None:
        """Delete a push target of a task."""
        await self._connection.call(self._connection.wire.delete_push(task_id, push_id))

    @override
    async def aclose(self) -> None:
        await self._connection.aclose()

    # --- Inside -----------------------------------------------------------------------------------------------------

    @property
    def _uri(self) -> str | None:
        return self._connection.activation.uri

    def _push(self, result: object) -> PushTarget:
        try:
            return self._connection.wire.decode_push(result)
        except DecodeError as error:
            raise RemoteError(f"expected a push target from {self.url}: {error}") from error

    async def _get(self, task_id: str, history_length: int | None) -> TaskItem:
        ask = self._connection.wire.get(task_id, history_length)
        return decode_task(self._connection, await self._connection.call(ask))

    async def _known(self, task_id: str) -> TaskItem:
        # Without event ids the history shows what was delivered before.
        history_length = 0 if self._memory.replays else None
        return await read_until_answered(lambda: self._get(task_id, history_length), self._retry_policy)

    def _snapshot(self, task: TaskItem, seq: int | None = None) -> TaskSnapshot:
        try:
            return self._memory.complete(snapshot_of(task, self._uri, seq))
        except DecodeError as error:
            version = self.protocol
            raise RemoteError(f"expected a Task of A2A {version} from {self.url}: {error}") from error

    async def _send(self, outgoing: OutgoingMessage, known: TaskItem | None, decoder: StreamDecoder) -> Turn:
        """Send a message, repeatedly if necessary; ``known`` is the task that it continues."""
        is_taken_once = self._connection.profile.takes_messages_once
        if known is None:

            async def begin() -> tuple[ItemSource, Numbered]:
                source = await self._sent(outgoing)
                return source, await first_item(source, self.url)

            source, first = await send_until_arrived(begin, self._retry_policy, is_taken_once=is_taken_once)
            return await self._begun(source, first, decoder, is_new=True)
        # The head of the answer shows that the message has arrived; events that are lost later are resumed.
        source = await send_until_arrived(lambda: self._sent(outgoing), self._retry_policy, is_taken_once=is_taken_once)
        snapshot = self._snapshot(known)
        decoder.begin(snapshot.state)
        self._memory.remember(snapshot.task_id, snapshot.context_id, decoder)
        return self._turn(source, decoder, snapshot, snapshot.seq or None, None)

    async def _sent(self, outgoing: OutgoingMessage) -> ItemSource:
        ask = self._connection.wire.message(outgoing, stream=self._connection.profile.streams)
        if self._connection.profile.streams:
            return await open_source(self._connection, ask)
        first = decode_item(self._connection, await self._connection.call(ask, waits=True))
        return PolledSource(self._connection, first, first.task_id or outgoing.task_id or "", self._retry_policy)

    async def _begun(
        self, source: ItemSource, first: Numbered, decoder: StreamDecoder, *, is_new: bool, tells_state: bool = False
    ) -> Turn:
        """Return the turn; its first item names the task and the task's state."""
        try:
            item, seq = first
            reader = TaskReader(self._connection, decoder, self._retry_policy)
            begun: Sequence[Delivery] = ()
            if not isinstance(item, TaskItem):
                begun = reader.decode(item, seq)
                snapshot = _task_of_item(item.task_id, item.context_id, isinstance(item, MessageItem))
            elif is_new and seq is None:
                # Everything in this Task results from this message.
                snapshot = replace(self._snapshot(item), state=TaskState.SUBMITTED, error=None, reason=None, pending=())
                decoder.begin(TaskState.SUBMITTED)
                begun = reader.decode(item, None)
            else:
                snapshot = self._snapshot(item, seq)
                decoder.begin(snapshot.state)
                decoder.mark_delivered(item)
                if tells_state and snapshot.state.ends_stream and seq is None:
                    change = StateChange(snapshot.state, snapshot.error, snapshot.reason or MISSED_EVENTS)
                    begun = (Delivery(None, time.time(), change),)
            if is_new:
                self._memory.remember(snapshot.task_id, snapshot.context_id, decoder)
            return self._turn(source, decoder, snapshot, seq or snapshot.seq or None, begun, is_new=is_new)
        except BaseException:
            await source.aclose()
            raise

    def _turn(
        self,
        source: ItemSource,
        decoder: StreamDecoder,
        snapshot: TaskSnapshot,
        seen: int | None,
        begun: Sequence[Delivery] | None,
        *,
        is_new: bool = False,
    ) -> Turn:
        reader = TaskReader(self._connection, decoder, self._retry_policy)
        deliveries = reader.deliveries(source, snapshot.task_id, seen, begun)
        return Turn(snapshot, self._remembered(deliveries, snapshot, decoder), is_new=is_new)

    async def _remembered(
        self, deliveries: AsyncGenerator[Delivery, Any], snapshot: TaskSnapshot, decoder: StreamDecoder
    ) -> AsyncGenerator[Delivery, None]:
        try:
            async for delivery in deliveries:
                self._memory.record(snapshot.task_id, delivery, decoder)
                yield delivery
        finally:
            await deliveries.aclose()


def _task_of_item(task_id: str, context_id: str, is_message: bool) -> TaskSnapshot:
    now = time.time()
    state = TaskState.SUBMITTED if is_message else TaskState.WORKING
    return TaskSnapshot(task_id, context_id, state, 0, "", now, now)
