"""One task's deliveries as a client reads them, over as many connections as it takes.

A stream that breaks is taken up again: after the last event seen where the server numbers its events, else with the
task as it stands. A server that does not stream is asked until the work rests. Deliberately not here: what items mean
(the decoders), and which request began it all (:mod:`isthmus.a2a.client.remote_agent`).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from isthmus.a2a.client.answers import ConnectionLostError, RemoteError
from isthmus.a2a.client.connection import AgentConnection, ItemStream
from isthmus.a2a.client.wires import MethodCall
from isthmus.a2a.protocol.items import Item, MessageItem, StatusItem, TaskItem
from isthmus.a2a.protocol.snapshots import snapshot_of
from isthmus.a2a.protocol.stream_decoder import StreamDecoder
from isthmus.client import MISSED_EVENTS, Delivery, TaskNotResumable
from isthmus.errors import DecodeError, IsthmusError
from isthmus.events import StateChange
from isthmus.rpc.messages import METHOD_NOT_FOUND, RpcError

Numbered: TypeAlias = tuple[Item, int | None]
"""An item, and its event id where it has one."""


@dataclass(frozen=True, slots=True)
class StreamRetryPolicy:
    """How a broken stream is taken up again: ``attempts`` in a row, with waits that double between two limits (s).

    A message whose answer was lost is sent again as often, but not later than ``deadline`` seconds after it was first.
    """

    attempts: int = 8
    first_wait: float = 0.1
    longest_wait: float = 5
    deadline: float = 60
    lively_seconds: float = 10.0
    """A stream that was open for longer is not a failure, also when it told nothing new."""
    rest_seconds: float = 2.0
    """How long a stream may stay open after the work rests, on servers that do not say that it ends."""
    first_poll_seconds: float = 0.5
    """Pause between the first two looks at a task on a server that does not stream; later ones are longer."""
    longest_poll_seconds: float = 5.0

    def wait(self, attempt: int) -> float:
        """Seconds before attempt 1, 2, ..."""
        return min(self.first_wait * 2 ** (attempt - 1), self.longest_wait)


class ItemSource(Protocol):
    """Where items come from."""

    async def next(self) -> Numbered | None:
        """Return the next item and its event id; None at the end.

        Raises:
            ConnectionLostError: the connection broke.
            RemoteError: what came is none.
        """
        ...

    async def finish(self) -> None:
        """Leave, after the last item."""
        ...

    async def aclose(self) -> None:
        """Leave; the task goes on."""
        ...


class StreamSource:
    """The items of an event stream."""

    def __init__(
        self, connection: AgentConnection, stream: ItemStream, first: Sequence[tuple[Any, int | None]] = ()
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._first = list(first)

    async def next(self) -> Numbered | None:
        """Return the next item."""
        found = self._first.pop(0) if self._first else await self._stream.next()
        if found is None:
            return None
        result, seq = found
        # Elsewhere the ids of events may mean anything, e.g. begin anew in every stream.
        return decoded_item(self._connection, result), seq if self._connection.activation.active else None

    async def finish(self) -> None:
        """Leave, after the last item."""
        await self._stream.finish()

    async def aclose(self) -> None:
        """Leave; the task goes on."""
        await self._stream.aclose()


class PolledSource:
    """The answer to a message, then the task again and again, on a server that does not stream."""

    def __init__(self, connection: AgentConnection, first: Item, task_id: str, patience: StreamRetryPolicy) -> None:
        self._connection = connection
        self._first: Item | None = first
        self._task_id = task_id
        self._pause = patience.first_poll_seconds
        self._longest_pause = patience.longest_poll_seconds
        self._rests = isinstance(first, MessageItem) or (
            isinstance(first, TaskItem | StatusItem) and first.status.state.ends_stream
        )

    async def next(self) -> Numbered | None:
        """Return the next look."""
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

    async def finish(self) -> None:
        """Nothing is open."""

    async def aclose(self) -> None:
        """Nothing is open."""


class FollowedSource:
    """The stream of a task that goes on after the event ``after``; opened with the first item.

    The task itself, again and again, where the server gives no such stream: it does not stream, it does not take
    streams up again, or the task has ended there.
    """

    def __init__(
        self,
        connection: AgentConnection,
        task_id: str,
        patience: StreamRetryPolicy,
        after: int | None = None,
        *,
        streams: bool = True,
    ) -> None:
        self._connection = connection
        self._task_id = task_id
        self._patience = patience
        self._after = after
        self._streams = streams and connection.offer.streams
        self._source: ItemSource | None = None

    async def next(self) -> Numbered | None:
        """Return the next item."""
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
            self._source = PolledSource(self._connection, task, self._task_id, self._patience)
        return await self._source.next()

    async def finish(self) -> None:
        """Leave, after the last item."""
        if self._source is not None:
            await self._source.finish()

    async def aclose(self) -> None:
        """Leave; the task goes on."""
        if self._source is not None:
            await self._source.aclose()


async def open_source(connection: AgentConnection, ask: MethodCall, after: int | None = None) -> ItemSource:
    """Return the stream that answers a request."""
    return StreamSource(connection, await connection.stream(ask, after))


async def first_of(source: ItemSource, url: str) -> Numbered:
    """Return the first item, which is there whenever the request was met; the source is left where it is not.

    Raises:
        ConnectionLostError: the connection broke before it.
        RemoteError: what came is none.
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
    return decoded_task(connection, await connection.call(connection.wire.get(task_id)))


class TaskReader:
    """Reads what happens to one task. ``seen`` is the id of the last event seen, None where there are no ids."""

    def __init__(self, connection: AgentConnection, decoder: StreamDecoder, patience: StreamRetryPolicy) -> None:
        self._connection = connection
        self._decoder = decoder
        self._patience = patience

    async def deliveries(
        self, source: ItemSource, task_id: str, seen: int | None, begun: Sequence[Delivery] | None
    ) -> AsyncGenerator[Delivery, None]:
        """What the source brings, and those that follow it when it breaks.

        ``begun`` came with its first item, which was read already; None when none was, and one must come.
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
                    is_fruitful = has_news or time.monotonic() - opened > self._patience.lively_seconds
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
            RemoteError: it does not fit.
        """
        try:
            return self._decoder.decode(item, seq)
        except DecodeError as error:
            raise validation_error(self._connection, error) from error

    async def _next_or_rest(self, source: ItemSource, task_id: str, seen: int | None) -> Numbered | None:
        """The next item of a task that rests as far as it was told; None at the end, or where nothing is to come.

        A stream of 1.0 stays open while the task waits for a user, so that the task itself is asked whether it does.
        A stream of 0.3 says that it ends; without event ids, so that no replay can follow, it has a moment for that.
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
            async with asyncio.timeout(self._patience.rest_seconds):
                return await source.next()
        except TimeoutError:
            return None

    async def _rests(self, task_id: str, seen: int | None) -> bool:
        """Return whether the server calls the task at rest, and has told all of it."""
        try:
            task = await _task(self._connection, task_id)
            seq = snapshot_of(task, self._connection.activation.uri).seq
        except IsthmusError:
            await asyncio.sleep(self._patience.rest_seconds)
            return True
        return task.status.state.ends_stream and (seen is None or seq <= seen)

    async def _resumed(
        self, task_id: str, seen: int | None, failures: int, fruitless: int, cause: Exception | None
    ) -> ItemSource:
        """Return the task after the last event seen.

        ``failures`` in a row brought no item, ``fruitless`` streams in a row soon ended without news: the more of
        them, the longer is waited. A server whose streams tell nothing is asked for the task instead.
        """
        attempts = self._patience.attempts
        is_fruitless = fruitless > attempts
        if failures > attempts or not task_id or (is_fruitless and seen is not None):
            raise ConnectionLostError(
                f"the stream of task {task_id or '(not yet known)'} from {self._connection.url} broke and could not be "
                f"taken up again in {max(failures, fruitless) - 1} attempts; the task goes on there"
            ) from cause
        await asyncio.sleep(self._patience.wait(max(failures, fruitless)))
        if seen is None:
            self._decoder.resumed()
        return FollowedSource(self._connection, task_id, self._patience, seen, streams=not is_fruitless)


def _tells_of_a_gap(delivery: Delivery) -> bool:
    return isinstance(delivery.event, StateChange) and delivery.event.reason == MISSED_EVENTS


def decoded_item(connection: AgentConnection, result: object) -> Item:
    """Return a stream item, or the answer to a message.

    Raises:
        RemoteError: it is none.
    """
    try:
        return connection.wire.decode_item(result)
    except DecodeError as error:
        raise validation_error(connection, error) from error


def decoded_task(connection: AgentConnection, result: object) -> TaskItem:
    """Return a Task.

    Raises:
        RemoteError: it is none.
    """
    try:
        return connection.wire.decode_task(result)
    except DecodeError as error:
        version = connection.wire.version
        said = connection.without_token(str(error))
        raise RemoteError(f"{connection.url} sent something else than a Task of A2A {version}: {said}") from None


def validation_error(connection: AgentConnection, error: DecodeError) -> RemoteError:
    """Return the error for an item of another shape."""
    said = connection.without_token(str(error))
    return RemoteError(f"{connection.url} sent an event that does not fit its protocol: {said}")
