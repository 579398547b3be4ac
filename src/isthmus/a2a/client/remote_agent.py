"""RemoteAgent: an agent behind an A2A server, as an AgentClient; the way to drive any A2A agent from a program.

Speaks A2A 0.3 and 1.0, the development-tool extension, the dialect of gemini-cli-a2a-server, and plain A2A. Events
come as they do from the agent itself; a stream that breaks is taken up again. Deliberately not here: HTTP
(:mod:`isthmus.a2a.client.connection`), JSON shapes (the wire modules), and any agent: this must be usable where only
a server is.
"""

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from isthmus.a2a.client.answers import RemoteError
from isthmus.a2a.client.commands import RemoteCommands
from isthmus.a2a.client.connection import AgentConnection
from isthmus.a2a.client.dialects import answer_parts, settings_metadata
from isthmus.a2a.client.discovery import ClientDialect, ServerProfile
from isthmus.a2a.client.memory import RemoteTasks
from isthmus.a2a.client.sending import arrived
from isthmus.a2a.client.streams import (
    FollowedSource,
    ItemSource,
    Numbered,
    PolledSource,
    StreamRetryPolicy,
    TaskReader,
    decoded_item,
    decoded_task,
    first_of,
    open_source,
)
from isthmus.a2a.client.wires import OutgoingMessage
from isthmus.a2a.protocol.items import MessageItem, TaskItem, object_of, objects_of, optional_text
from isthmus.a2a.protocol.snapshots import snapshot_of
from isthmus.a2a.protocol.stream_decoder import StreamDecoder
from isthmus.client import (
    MISSED_EVENTS,
    CommandMessage,
    CommandScope,
    Delivery,
    Execution,
    InvalidRequest,
    PromptMessage,
    PushTarget,
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

__all__ = ["RemoteAgent", "StreamRetryPolicy"]

LISTED_TASKS = 1000
"""How many of a server's tasks, the last changed ones, are looked through for those that fit a query."""


class RemoteAgent:
    """Implements :class:`isthmus.client.AgentClient` over A2A; made by :meth:`connect`.

    What a server does not have is made up for where that is possible: tasks that cannot be streamed are polled, and
    what was missed is read from the task. Where events may be missing all the same, a state change with the reason
    ``missed-events`` says so.
    """

    def __init__(self, connection: AgentConnection, patience: StreamRetryPolicy) -> None:
        self._connection = connection
        self._patience = patience
        self._memory = RemoteTasks(connection.offer.manner, connection.activation.uri)
        self._commands = RemoteCommands(connection, patience, self._memory)

    @classmethod
    async def connect(
        cls,
        url: str,
        token: str | None = None,
        *,
        deadline: float = 60,
        patience: StreamRetryPolicy | None = None,
        protocol: str | None = None,
        binding: str | None = None,
        ca_file: Path | None = None,
    ) -> "RemoteAgent":
        """Connect to the server at ``url``. ``deadline`` is how many seconds of silence end a wait.

        ``protocol`` is ``0.3`` or ``1.0``, and ``binding`` ``JSONRPC`` or ``HTTP+JSON``, where the server offers both;
        by default what suits it best. ``ca_file`` (PEM) holds the certificates that vouch for the server, where the
        usual authorities do not know it.

        Raises:
            RemoteError: nobody is there, the token is refused, it is not an A2A server, or none that we speak to.
            IncompatibleExtensionError: it speaks another version of the extension.
        """
        connection = await AgentConnection.open(
            url, token, deadline=deadline, protocol=protocol, binding=binding, ca_file=ca_file
        )
        return cls(connection, patience or StreamRetryPolicy())

    @property
    def url(self) -> str:
        """Where requests go."""
        return self._connection.url

    @property
    def name(self) -> str:
        """What the agent calls itself in its card."""
        return self._connection.offer.name

    @property
    def protocol(self) -> str:
        """The version of A2A that is spoken: ``0.3`` or ``1.0``."""
        return self._connection.wire.version

    @property
    def speaks_extension(self) -> bool:
        """The server has the development-tool extension."""
        return self._connection.activation.active

    @property
    def offer(self) -> ServerProfile:
        """What the server's card says of it."""
        return self._connection.offer

    @property
    def manner(self) -> ClientDialect:
        """How tool calls are spoken of there, as far as is known by now."""
        return self._memory.manner

    async def prompt(self, message: PromptMessage, *, push: PushTarget | None = None) -> Turn:
        """Start or continue a task; see :class:`~isthmus.client.AgentClient`. News of it go to ``push`` as well.

        A server of the dialect coderAgent keeps a conversation per task: there the message goes to the last task of
        the session.
        """
        task_id = message.task_id or self._memory.task_of_session(message.context_id)
        known = await self._known(task_id) if task_id is not None else None
        if known is not None and known.status.state.is_terminal and self._memory.manner is ClientDialect.CODER_AGENT:
            # The server would take the message, and never say a word.
            if message.task_id is not None:
                raise TaskNotResumable(f"task {task_id} is {known.status.state.value} and takes no further message")
            self._memory.forget_session(known.task_id)
            task_id = known = None
        decoder = self._memory.decoder(task_id)
        if known is not None:
            decoder.know(known)
        metadata = settings_metadata(self._memory.manner, self._uri, message.settings)
        outgoing = OutgoingMessage(
            message.message_id or str(uuid.uuid4()),
            message.parts or (MessagePart(text=message.text),),
            task_id,
            message.context_id or (known.context_id if known is not None else None),
            {**(message.metadata or {}), **(metadata or {})} or None,
            push,
        )
        return await self._send(outgoing, known, decoder)

    async def answer(
        self,
        task_id: str,
        confirmations: Sequence[ToolCallConfirmation],
        *,
        answered_by: str,
        context_id: str | None = None,
        message_id: str = "",
    ) -> Turn:
        """Answer questions of a task; see :class:`~isthmus.client.AgentClient`."""
        parts = answer_parts(self._memory.manner, confirmations)
        known = await self._known(task_id)
        if self._memory.manner is ClientDialect.CODER_AGENT:
            self._memory.require_open(self._snapshot(known), confirmations)
        metadata = {self._uri: {"answered_by": answered_by}} if self._uri is not None else None
        outgoing = OutgoingMessage(
            message_id or str(uuid.uuid4()), parts, task_id, context_id or known.context_id, metadata
        )
        return await self._send(outgoing, known, self._memory.decoder(task_id))

    async def follow(self, task_id: str, after: int | None = None) -> Turn:
        """What comes after an event, or from now on; see :class:`~isthmus.client.AgentClient`.

        A server that does not number its events replays none of them: then this is what comes from now on.
        """
        decoder = self._memory.watcher(task_id)
        if self._memory.replays and after is not None:
            known = self._snapshot(await self._get(task_id, None))
            decoder.begin(known.state)
            source = await open_source(self._connection, self._connection.wire.follow(task_id), after)
            # With nothing to replay, a stream of a task at rest ends as it began.
            return self._turn(source, decoder, known, after, () if after >= known.seq else None)
        source = FollowedSource(self._connection, task_id, self._patience)
        first = await first_of(source, self.url)
        return await self._begun(source, first, decoder, is_new=False, tells_state=after is not None)

    async def cancel(self, task_id: str) -> TaskSnapshot:
        """Stop a task."""
        result = await self._connection.call(self._connection.wire.cancel(task_id))
        self._memory.forget_session(task_id)
        return self._snapshot(decoded_task(self._connection, result))

    async def get(self, task_id: str, history_length: int | None = None) -> TaskSnapshot:
        """Return the task now."""
        snapshot = self._snapshot(await self._get(task_id, history_length))
        if history_length is None:
            return snapshot
        # The final text comes as the task's status, also when no history is asked for.
        return replace(snapshot, history=snapshot.history[max(len(snapshot.history) - history_length, 0) :])

    async def tasks(self, limit: int = 100) -> Sequence[TaskSnapshot]:
        """Return the tasks of the server. A2A 0.3 has no method for it: there it is our own, ``isthmus/tasks``.

        Raises:
            InvalidRequest: the server does not have it.
        """
        listed: list[TaskSnapshot] = []
        token = ""
        while len(listed) < limit:
            page, token = await self._page_of_tasks(limit - len(listed), token)
            listed += page
            if not token or not page:
                break
        return listed[:limit]

    async def list_tasks(self, query: TaskQuery) -> TaskList:
        """Return a page of the server's tasks, out of the last changed ones."""
        return select_tasks(await self.tasks(LISTED_TASKS), query)

    async def _page_of_tasks(self, limit: int, token: str) -> tuple[Sequence[TaskSnapshot], str]:
        """At most that many tasks, and the token of the page after it; empty on the last."""
        try:
            result = await self._connection.call(self._connection.wire.tasks(limit, token))
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            raise InvalidRequest(f"{self.url} does not list its tasks; name the task by its id") from error
        try:
            found = object_of(result, "tasks")
            # 1.0 leaves out what is empty.
            is_complete = "tasks" in found or self.protocol == "1.0"
            if not is_complete or not isinstance(found.get("tasks", []), list):
                raise DecodeError("tasks", "a list", found.get("tasks"))
        except DecodeError as error:
            raise RemoteError(f"{self.url} sent something else than tasks") from error
        listed = (decoded_task(self._connection, item) for item in objects_of(found.get("tasks")))
        return [self._snapshot(item) for item in listed], optional_text(found.get("nextPageToken")) or ""

    async def commands(self, scope: CommandScope) -> Sequence[SlashCommand]:
        """Return the server's slash commands; none when it does not have them."""
        return await self._commands.list(scope)

    async def execute(self, command: CommandMessage) -> Execution:
        """Start a slash command there; see :class:`~isthmus.client.AgentClient`."""
        return await self._commands.execute(command)

    # --- Push notifications -----------------------------------------------------------------------------------------

    async def set_push(self, task_id: str, target: PushTarget) -> PushTarget:
        """Have news of a task sent to a URL; the target comes back with its id.

        Raises:
            InvalidRequest: the server refuses the target, or sends no push notifications.
        """
        return self._push(await self._connection.call(self._connection.wire.set_push(task_id, target)))

    async def get_push(self, task_id: str, push_id: str) -> PushTarget:
        """One target of a task."""
        return self._push(await self._connection.call(self._connection.wire.get_push(task_id, push_id)))

    async def list_push(self, task_id: str) -> Sequence[PushTarget]:
        """All targets of a task."""
        result = await self._connection.call(self._connection.wire.list_push(task_id))
        try:
            return self._connection.wire.decode_pushes(result)
        except DecodeError as error:
            raise RemoteError(f"{self.url} sent something else than push targets: {error}") from error

    async def delete_push(self, task_id: str, push_id: str) -> None:
        """Have nothing sent there any more."""
        await self._connection.call(self._connection.wire.delete_push(task_id, push_id))

    async def aclose(self) -> None:
        """Close the connections; tasks go on."""
        await self._connection.aclose()

    # --- Inside -----------------------------------------------------------------------------------------------------

    @property
    def _uri(self) -> str | None:
        return self._connection.activation.uri

    def _push(self, result: object) -> PushTarget:
        try:
            return self._connection.wire.decode_push(result)
        except DecodeError as error:
            raise RemoteError(f"{self.url} sent something else than a push target: {error}") from error

    async def _get(self, task_id: str, history_length: int | None) -> TaskItem:
        ask = self._connection.wire.get(task_id, history_length)
        return decoded_task(self._connection, await self._connection.call(ask))

    async def _known(self, task_id: str) -> TaskItem:
        # What was told before is known by its history, where no event ids say so.
        return await self._get(task_id, 0 if self._memory.replays else None)

    def _snapshot(self, task: TaskItem, seq: int | None = None) -> TaskSnapshot:
        try:
            return self._memory.completed(snapshot_of(task, self._uri, seq))
        except DecodeError as error:
            version = self.protocol
            raise RemoteError(f"{self.url} sent something else than a Task of A2A {version}: {error}") from error

    async def _send(self, outgoing: OutgoingMessage, known: TaskItem | None, decoder: StreamDecoder) -> Turn:
        """Send a message until it has arrived; ``known`` is the task that it goes on with."""
        is_taken_once = self._connection.offer.takes_messages_once
        if known is None:

            async def begin() -> tuple[ItemSource, Numbered]:
                source = await self._sent(outgoing)
                return source, await first_of(source, self.url)

            source, first = await arrived(begin, self._patience, is_taken_once=is_taken_once)
            return await self._begun(source, first, decoder, is_new=True)
        # It has arrived with the answer's head: what is lost of the events after it is taken up again.
        source = await arrived(lambda: self._sent(outgoing), self._patience, is_taken_once=is_taken_once)
        snapshot = self._snapshot(known)
        decoder.begin(snapshot.state)
        self._memory.remember(snapshot.task_id, snapshot.context_id, decoder)
        return self._turn(source, decoder, snapshot, snapshot.seq or None, None)

    async def _sent(self, outgoing: OutgoingMessage) -> ItemSource:
        ask = self._connection.wire.message(outgoing, stream=self._connection.offer.streams)
        if self._connection.offer.streams:
            return await open_source(self._connection, ask)
        first = decoded_item(self._connection, await self._connection.call(ask, waits=True))
        return PolledSource(self._connection, first, first.task_id or outgoing.task_id or "", self._patience)

    async def _begun(
        self, source: ItemSource, first: Numbered, decoder: StreamDecoder, *, is_new: bool, tells_state: bool = False
    ) -> Turn:
        """Return a turn whose first item says which task it is about, and how that stands."""
        try:
            item, seq = first
            reader = TaskReader(self._connection, decoder, self._patience)
            begun: Sequence[Delivery] = ()
            if not isinstance(item, TaskItem):
                begun = reader.decode(item, seq)
                snapshot = _task_of_item(item.task_id, item.context_id, isinstance(item, MessageItem))
            elif is_new and seq is None:
                # Whatever it holds has come about by this message.
                snapshot = replace(self._snapshot(item), state=TaskState.SUBMITTED, error=None, reason=None, pending=())
                decoder.begin(TaskState.SUBMITTED)
                begun = reader.decode(item, None)
            else:
                snapshot = self._snapshot(item, seq)
                decoder.begin(snapshot.state)
                decoder.know(item)
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
        reader = TaskReader(self._connection, decoder, self._patience)
        deliveries = reader.deliveries(source, snapshot.task_id, seen, begun)
        return Turn(snapshot, self._remembered(deliveries, snapshot, decoder), is_new=is_new)

    async def _remembered(
        self, deliveries: AsyncGenerator[Delivery, Any], snapshot: TaskSnapshot, decoder: StreamDecoder
    ) -> AsyncGenerator[Delivery, None]:
        try:
            async for delivery in deliveries:
                self._memory.learn(snapshot.task_id, delivery, decoder)
                yield delivery
        finally:
            await deliveries.aclose()


def _task_of_item(task_id: str, context_id: str, is_message: bool) -> TaskSnapshot:
    now = time.time()
    state = TaskState.SUBMITTED if is_message else TaskState.WORKING
    return TaskSnapshot(task_id, context_id, state, 0, "", now, now)
