"""Reads one task's deliveries, over any number of connections.

A broken stream is resumed: after the last event if the server numbers its events, otherwise with the current Task. A
server that does not stream is polled until the work has ended or a user is asked. Decoders read the items
(:mod:`isthmus.a2a.protocol.stream_decoder`).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol, TypeAlias

from typing_extensions import override

from isthmus.a2a.client.answers import ConnectionLostError, RemoteError
from isthmus.a2a.client.connection import AgentConnection, ItemStream
from isthmus.a2a.client.retry import StreamRetryPolicy
from isthmus.a2a.client.wires import MethodCall
from isthmus.a2a.protocol.items import Item, MessageItem, StatusItem, TaskItem
from isthmus.a2a.protocol.snapshots import snapshot_of
from isthmus.a2a.protocol.stream_decoder import StreamDecoder
from isthmus.client import MISSED_EVENTS, Delivery, TaskNotResumable
from isthmus.errors import DecodeError, IsthmusError
from isthmus.events import StateChange
from isthmus.rpc.messages import METHOD_NOT_FOUND, RpcError

Numbered: TypeAlias = tuple[Item, int | None]
"""An item, and its event id or None."""


class ItemSource(Protocol):
    """A source of items."""

    async def next(self) -> Numbered | None:
        """Return the next item and its event id; None at the end.

        Raises:
            ConnectionLostError: the connection broke.
            RemoteError: the server sent something that is not an item.
        """
        ...

    async def finish(self) -> None:
        """Close the source after its last item."""
        ...

    async def aclose(self) -> None:
        """Close the source; the task continues."""
        ...


class StreamSource(ItemSource):
    """The items of an event stream."""

    def __init__(
        self, connection: AgentConnection, stream: ItemStream, first: Sequence[tuple[Any, int | None]] = ()
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._first = list(first)

    @override
    async def next(self) -> Numbered | None:
        found = self._first.pop(0) if self._first else await self._stream.next()
        if found is None:
            return None
        result, seq = found
        # Without the extension event ids may mean anything, e.g. begin again in every stream.
        return decode_item(self._connection, result), seq if self._connection.activation.active else None

    @override
    async def finish(self) -> None:
        await self._stream.finish()

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()


class PolledSource(ItemSource):
    """The answer to a message, then the polled task, on a server that does not stream."""

    def __init__(self, connection: AgentConnection, first: Item, task_id: str, retry_policy: StreamRetryPolicy) -> None:
        self._connection = connection
        self._first: Item | None = first
        self._task_id = task_id
        self._pause = retry_policy.first_poll_seconds
        self._longest_pause = retry_policy.longest_poll_seconds
        self._rests = isinstance(first, MessageItem) or (
            isinstance(first, TaskItem | StatusItem) and first.status.state.ends_stream
        )

    @override
    async def next(self) -> Numbered | None:
        if self._first is not None:
            first, self._first = self._first, None
            return first, None
        if self._rests:
            return None
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 1.5, self._longest_pause)
        task = await _task(self._connection, self._task_id)
        self._rests = task.status.state.ends_stream
        return task, None

    @override
    async def finish(self) -> None:
        pass

    @override
    async def aclose(self) -> None:
        pass


class FollowedSource(ItemSource):
    """The stream of a task after the event ``after``, opened when the first item is read.

    If the server does not stream, does not resume streams, or the task has ended, the task is polled instead.
    """

    def __init__(
        self,
        connection: AgentConnection,
        task_id: str,
        retry_policy: StreamRetryPolicy,
        after: int | None = None,
        *,
        streams: bool = True,
    ) -> None:
        self._connection = connection
        self._task_id = task_id
        self._retry_policy = retry_policy
        self._after = after
        self._streams = streams and connection.profile.streams
        self._source: ItemSource | None = None

    @override
    async def next(self) -> Numbered | None:
        if self._streams:
            try:
                if self._source is None:
                    ask = self._connection.wire.follow(self._task_id)
                    self._source = await open_source(self._connection, ask, self._after)
                return await self._source.next()
            except (TaskNotResumable, RpcError) as error:
                if isinstance(error, RpcError) and error.code != METHOD_NOT_FOUND:
                    raise
            await self.aclose()
            self._streams, self._source = False, None
        if self._source is None:
            task = await _task(self._connection, self._task_id)
            self._source = PolledSource(self._connection, task, self._task_id, self._retry_policy)
        return await self._source.next()

    @override
    async def finish(self) -> None:
        if self._source is not None:
            await self._source.finish()

    @override
    async def aclose(self) -> None:
        if self._source is not None:
            await self._source.aclose()


async def open_source(connection: AgentConnection, ask: MethodCall, after: int | None = None) -> ItemSource:
    """Return the stream that answers a request."""
    return StreamSource(connection, await connection.stream(ask, after))


async def first_item(source: ItemSource, url: str) -> Numbered:
    """Return the first item, which every successful request has; without it the source is closed.

    Raises:
        ConnectionLostError: the connection broke before it.
        RemoteError: the server sent something that is not an item.
    """
    try:
        first = await source.next()
        if first is None:
            raise ConnectionLostError(f"{url} ended the stream without an item")
    except BaseException:
        await source.aclose()
        raise
    return first


async def _task(connection: AgentConnection, task_id: str) -> TaskItem:
    return decode_task(connection, await connection.call(connection.wire.get(task_id)))


class TaskReader:
    """Reads the deliveries of one task. ``seen`` is the id of the last event, None if there are no ids."""

    def __init__(self, connection: AgentConnection, decoder: StreamDecoder, retry_policy: StreamRetryPolicy) -> None:
        self._connection = connection
        self._decoder = decoder
        self._retry_policy = retry_policy

    async def deliveries(
        self, source: ItemSource, task_id: str, seen: int | None, begun: Sequence[Delivery] | None
    ) -> AsyncGenerator[Delivery, None]:
        """Yield the deliveries of the source, and of the sources that replace it when it breaks.

        ``begun`` are the deliveries of its first item, which was already read. None means that no item was read yet;
        then the source must have one.
        """
        decoder = self._decoder
        is_over = False
        has_begun = begun is not None
        try:
            for delivery in begun or ():
                yield delivery
            failures = fruitless = 0
            opened, has_news = time.monotonic(), True
            while not decoder.is_final:
                cause: Exception | None = None
                try:
                    may_rest = has_begun and decoder.at_rest
                    found = await (self._next_or_rest(source, task_id, seen) if may_rest else source.next())
                except ConnectionLostError as error:
                    found, cause = None, error
                if found is None:
                    if cause is None and has_begun and decoder.at_rest:
                        is_over = True
                        return
                    failures += 1
                    is_fruitful = has_news or time.monotonic() - opened > self._retry_policy.lively_seconds
                    fruitless = 0 if is_fruitful else fruitless + 1
                    await source.aclose()
                    source = await self._resumed(task_id, seen, failures, fruitless, cause)
                    opened, has_news = time.monotonic(), False
                    continue
                failures, has_begun = 0, True
                item, seq = found
                if seq is not None and seen is not None and seq <= seen and not isinstance(item, TaskItem):
                    continue
                seen = seq if seq is not None else seen
                for delivery in self.decode(item, seq):
                    has_news = has_news or not _tells_of_a_gap(delivery)
                    yield delivery
            is_over = True
        finally:
            await (source.finish() if is_over else source.aclose())

    def decode(self, item: Item, seq: int | None) -> list[Delivery]:
        """Return the deliveries of an item.

        Raises:
            RemoteError: it is invalid.
        """
        try:
            return self._decoder.decode(item, seq)
        except DecodeError as error:
            raise validation_error(self._connection, error) from error

    async def _next_or_rest(self, source: ItemSource, task_id: str, seen: int | None) -> Numbered | None:
        """Return the next item of a task whose last event said that it ended or waits; None if nothing will come.

        A stream of 1.0 stays open while the task waits for a user, so the task is requested to see whether it waits. A
        stream of 0.3 announces its end; without event ids, when no replay can follow, it is given a moment to do so.
        """
        if self._connection.wire.version != "1.0":
            return await (self._next_soon(source) if seen is None else source.next())
        coming = asyncio.ensure_future(source.next())
        looking = asyncio.ensure_future(self._rests(task_id, seen))
        try:
            await asyncio.wait({coming, looking}, return_when=asyncio.FIRST_COMPLETED)
            return None if not coming.done() and await looking else await coming
        finally:
            for task in (looking, coming):
                task.cancel()
            await asyncio.gather(coming, looking, return_exceptions=True)

    async def _next_soon(self, source: ItemSource) -> Numbered | None:
        try:
            async with asyncio.timeout(self._retry_policy.rest_seconds):
                return await source.next()
        except TimeoutError:
            return None

    async def _rests(self, task_id: str, seen: int | None) -> bool:
        """Return whether the task has ended or waits, and all its events were seen."""
        try:
            task = await _task(self._connection, task_id)
            seq = snapshot_of(task, self._connection.activation.uri).seq
        except IsthmusError:
            await asyncio.sleep(self._retry_policy.rest_seconds)
            return True
        return task.status.state.ends_stream and (seen is None or seq <= seen)

    async def _resumed(
        self, task_id: str, seen: int | None, failures: int, fruitless: int, cause: Exception | None
    ) -> ItemSource:
        """Return a source of the events after the last one seen, after a wait that grows with the failures.

        ``failures`` is the number of streams in a row without an item, ``fruitless`` of those that soon ended without
        anything new. If too many were fruitless, the task is polled instead.
        """
        attempts = self._retry_policy.attempts
        is_fruitless = fruitless > attempts
        if failures > attempts or not task_id or (is_fruitless and seen is not None):
            raise ConnectionLostError(
                f"the stream of task {task_id or '(not yet known)'} from {self._connection.url} broke and could not be "
                f"resumed in {max(failures, fruitless) - 1} attempts; the task continues there"
            ) from cause
        await asyncio.sleep(self._retry_policy.wait(max(failures, fruitless)))
        if seen is None:
            self._decoder.resumed()
        return FollowedSource(self._connection, task_id, self._retry_policy, seen, streams=not is_fruitless)


def _tells_of_a_gap(delivery: Delivery) -> bool:
    return isinstance(delivery.event, StateChange) and delivery.event.reason == MISSED_EVENTS


def decode_item(connection: AgentConnection, result: object) -> Item:
    """Return the item in a result.

    Raises:
        RemoteError: it is not an item.
    """
    try:
        return connection.wire.decode_item(result)
    except DecodeError as error:
        raise validation_error(connection, error) from error


def decode_task(connection: AgentConnection, result: object) -> TaskItem:
    """Return the Task in a result.

    Raises:
        RemoteError: it is not a Task.
    """
    try:
        return connection.wire.decode_task(result)
    except DecodeError as error:
        version = connection.wire.version
        said = connection.without_token(str(error))
        raise RemoteError(f"expected a Task of A2A {version} from {connection.url}: {said}") from None


def validation_error(connection: AgentConnection, error: DecodeError) -> RemoteError:
    """Return the error for an invalid item."""
    said = connection.without_token(str(error))
    return RemoteError(f"{connection.url} sent an invalid event: {said}")
