"""RemoteAgent: an agent behind an A2A server, as an AgentClient.

Events come as they do from the agent itself; a stream that breaks is taken up again after the last event seen.
Deliberately not here: HTTP (:mod:`isthmus.a2a.connection`), JSON shapes (the wire modules), and any agent: this module
must be usable where only a server is.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from isthmus.a2a.connection import Connection, ConnectionLostError, RemoteError, Stream
from isthmus.a2a.jsonrpc import METHOD_NOT_FOUND, RpcError
from isthmus.a2a.wire_v03_decoder import StreamDecoder, decode_task, is_task
from isthmus.a2a.wire_v03_requests import (
    CANCEL,
    GET,
    LIST,
    RESUBSCRIBE,
    STREAM,
    encode_answers,
    encode_prompt,
)
from isthmus.client import Delivery, InvalidRequest, PromptMessage, TaskSnapshot, Turn
from isthmus.errors import DecodeError
from isthmus.events import TaskState, ToolCallConfirmation


@dataclass(frozen=True, slots=True)
class Patience:
    """How a broken stream is taken up again: ``attempts`` in a row, with waits that double between two limits (s)."""

    attempts: int = 8
    first_wait: float = 0.1
    longest_wait: float = 5

    def wait(self, attempt: int) -> float:
        """Seconds before attempt 1, 2, ..."""
        return min(self.first_wait * 2 ** (attempt - 1), self.longest_wait)


class RemoteAgent:
    """Implements :class:`isthmus.client.AgentClient` over A2A 0.3; made by :meth:`connect`."""

    def __init__(self, connection: Connection, patience: Patience) -> None:
        self._connection = connection
        self._patience = patience

    @classmethod
    async def connect(
        cls, url: str, token: str | None = None, *, deadline: float = 60, patience: Patience | None = None
    ) -> "RemoteAgent":
        """Connect to the server at ``url``. ``deadline`` is how many seconds of silence end a wait.

        Raises:
            RemoteError: nobody is there, the token is refused, or it is not an A2A server.
            IncompatibleExtensionError: it speaks another version of the extension.
        """
        return cls(await Connection.open(url, token, deadline=deadline), patience or Patience())

    @property
    def url(self) -> str:
        """Where requests go."""
        return self._connection.url

    @property
    def speaks_extension(self) -> bool:
        """The server has the development-tool extension."""
        return self._connection.activation.active

    async def prompt(self, message: PromptMessage) -> Turn:
        """Start or continue a task; see :class:`~isthmus.client.AgentClient`."""
        if not message.message_id:
            message = replace(message, message_id=str(uuid.uuid4()))
        known = await self.get(message.task_id, 0) if message.task_id is not None else None
        return await self._turn(STREAM, encode_prompt(message, self._uri), known)

    async def answer(
        self,
        task_id: str,
        confirmations: Sequence[ToolCallConfirmation],
        *,
        answered_by: str,
        context_id: str | None = None,
    ) -> Turn:
        """Answer questions of a task; see :class:`~isthmus.client.AgentClient`."""
        known = await self.get(task_id, 0)
        message_id = str(uuid.uuid4())
        params = encode_answers(
            message_id, task_id, context_id or known.context_id, confirmations, answered_by, self._uri
        )
        return await self._turn(STREAM, params, known)

    async def follow(self, task_id: str, after: int | None = None) -> Turn:
        """What comes after an event, or from now on; see :class:`~isthmus.client.AgentClient`."""
        known = await self.get(task_id) if after is not None else None
        return await self._turn(RESUBSCRIBE, {"id": task_id}, known, after)

    async def cancel(self, task_id: str) -> TaskSnapshot:
        """Stop a task."""
        return self._snapshot(await self._connection.call(CANCEL, {"id": task_id}))

    async def get(self, task_id: str, history_length: int | None = None) -> TaskSnapshot:
        """The task now."""
        params: dict[str, Any] = {"id": task_id}
        if history_length is not None:
            params["historyLength"] = history_length
        snapshot = self._snapshot(await self._connection.call(GET, params))
        if history_length is None:
            return snapshot
        # The final text comes as the task's status, also when no history is asked for.
        return replace(snapshot, history=snapshot.history[max(len(snapshot.history) - history_length, 0) :])

    async def tasks(self, limit: int = 100) -> Sequence[TaskSnapshot]:
        """The tasks of the server, by its own method ``isthmus/tasks``; A2A 0.3 has none.

        Raises:
            InvalidRequest: the server does not have it.
        """
        try:
            result = await self._connection.call(LIST, {"limit": limit})
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            raise InvalidRequest(f"{self.url} does not list its tasks; name the task by its id") from error
        listed = cast("Mapping[str, Any]", result).get("tasks") if isinstance(result, Mapping) else None
        if not isinstance(listed, list):
            raise RemoteError(f"{self.url} sent something else than tasks")
        return [self._snapshot(item) for item in cast("list[object]", listed)]

    async def aclose(self) -> None:
        """Close the connections; tasks go on."""
        await self._connection.aclose()

    @property
    def _uri(self) -> str | None:
        return self._connection.activation.uri

    def _snapshot(self, result: object, seq: int | None = None) -> TaskSnapshot:
        try:
            return decode_task(result, self._uri, seq)
        except DecodeError as error:
            raise RemoteError(f"{self.url} sent something else than a Task of A2A 0.3: {error}") from error

    async def _turn(
        self, method: str, params: Mapping[str, Any], known: TaskSnapshot | None, after: int | None = None
    ) -> Turn:
        """Open a stream. Without ``known`` its first item says which task it is about, and how that stands."""
        stream = await self._connection.stream(method, params, after)
        try:
            if known is not None:
                decoder = StreamDecoder(self._uri, known.state)
                seen = after if after is not None else known.seq or None
                return Turn(known, self._deliveries(stream, decoder, known.task_id, seen, []))
            first = await stream.next()
            if first is None:
                raise RemoteError(f"{self.url} ended the stream of {method} without an item")
            result, seq = first
            if isinstance(result, Mapping) and is_task(cast("Mapping[str, Any]", result)):
                snapshot = self._snapshot(cast("object", result), seq)
                begun: list[Delivery] = []
                decoder = StreamDecoder(self._uri, snapshot.state)
                seen = snapshot.seq or None
            else:
                decoder = StreamDecoder(self._uri)
                begun = self._decode(decoder, cast("object", result), seq)
                snapshot = _task_of_item(cast("Mapping[str, Any]", result))
                seen = seq
            deliveries = self._deliveries(stream, decoder, snapshot.task_id, seen, begun)
            return Turn(snapshot, deliveries, is_new=method != RESUBSCRIBE)
        except BaseException:
            await stream.aclose()
            raise

    async def _deliveries(
        self, stream: Stream, decoder: StreamDecoder, task_id: str, seen: int | None, begun: list[Delivery]
    ) -> AsyncGenerator[Delivery, None]:
        """What a stream brings, over as many connections as it takes. ``begun`` came with its first item."""
        try:
            for delivery in begun:
                yield delivery
            attempt = 0
            while not decoder.is_final:
                try:
                    item = await stream.next()
                except ConnectionLostError as error:
                    item = None
                    cause: Exception | None = error
                else:
                    cause = None
                if item is None:
                    if cause is None and decoder.at_rest:
                        return
                    attempt += 1
                    await stream.aclose()
                    stream = await self._resume(task_id, seen, attempt, cause)
                    continue
                attempt = 0
                result, seq = item
                if seq is not None and seen is not None and seq <= seen and not _is_task(result):
                    continue
                seen = seq if seq is not None else seen
                for delivery in self._decode(decoder, result, seq):
                    yield delivery
        finally:
            await stream.aclose()

    async def _resume(self, task_id: str, seen: int | None, attempt: int, cause: Exception | None) -> Stream:
        """A new stream of the task after the last event seen; waits longer before each further attempt."""
        while True:
            if attempt > self._patience.attempts or not task_id:
                raise ConnectionLostError(
                    f"the stream of task {task_id or '(not yet known)'} from {self.url} broke and could not be "
                    f"taken up again in {attempt - 1} attempts; the task goes on there"
                ) from cause
            await asyncio.sleep(self._patience.wait(attempt))
            try:
                return await self._connection.stream(RESUBSCRIBE, {"id": task_id}, seen)
            except ConnectionLostError as error:
                cause = error
                attempt += 1

    def _decode(self, decoder: StreamDecoder, result: object, seq: int | None) -> list[Delivery]:
        try:
            return decoder.decode(result, seq)
        except DecodeError as error:
            raise RemoteError(f"{self.url} sent an event that does not fit its protocol: {error}") from error


def _is_task(result: object) -> bool:
    return isinstance(result, Mapping) and is_task(cast("Mapping[str, Any]", result))


def _task_of_item(item: Mapping[str, Any]) -> TaskSnapshot:
    task_id, context_id = str(item.get("taskId") or ""), str(item.get("contextId") or "")
    return TaskSnapshot(task_id, context_id, TaskState.WORKING, 0, "", 0, 0)
