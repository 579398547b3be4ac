"""Wraps the streams of a transport: results are repaired before the SDK sees them, and the end of the stream is told.

No tasks of its own and nothing queued: it costs a dictionary lookup a message. The SDK's checks stay behind it.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeAlias, cast

from mcp.client import Transport
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.methods import parse_server_notification, validate_server_result
from pydantic import ValidationError

from isthmus.mcp_host.connection.pending_requests import UnansweredRequests
from isthmus.mcp_host.results.repair import JsonObject, repair
from isthmus.mcp_host.transports.wrapped import WrappedStream

Item: TypeAlias = SessionMessage | Exception

_UNHEARD = frozenset({"notifications/message", "notifications/resources/updated"})
"""Notifications that nobody here listens to: a flood of them costs no more than to read it."""

_PROGRESS = "notifications/progress"

_SCHEMA_VERSION = "2025-11-25"
"""All revisions before 2026 are checked against this one's shapes, and those of 2026 have these fields alike."""


def validation_error(method: str, result: JsonObject) -> str | None:
    """Return why the SDK would refuse a result; None when it would not."""
    try:
        validate_server_result(method, _SCHEMA_VERSION, result)
    except ValidationError as error:
        return _first_error(error)
    except KeyError:
        return None
    except RecursionError:
        return "it is nested too deeply"
    return None


def notification_misfit(message: JSONRPCNotification) -> str | None:
    """Return why the SDK would refuse a notification; None when it would not, or does not know its method."""
    try:
        parse_server_notification(message.method, _SCHEMA_VERSION, message.params)
        if message.method == _PROGRESS:
            float((message.params or {}).get("progress", 0))
            float((message.params or {}).get("total") or 0)
    except ValidationError as error:
        return _first_error(error)
    except KeyError:
        return None
    except RecursionError:
        return "it is nested too deeply"
    except OverflowError:
        return "a number is too large"
    return None


def _first_error(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'][-2:])}: {first['msg']}"


class Observer:
    """The state of one connection's traffic.

    ``on_end`` is called when the server sends no more, ``on_misfit`` with what a notification is that is left out.
    """

    def __init__(
        self,
        server: str,
        on_end: Callable[[], None],
        on_dropped: Callable[[str, tuple[str, ...]], None],
        on_misfit: Callable[[str], None],
    ) -> None:
        self.on_end = on_end
        self._on_dropped = on_dropped
        self._on_misfit = on_misfit
        self._methods: dict[str | int, str] = {}
        self._unanswered = UnansweredRequests(server)

    def sent(self, item: SessionMessage) -> None:
        """Note a message that goes out."""
        if isinstance(item.message, JSONRPCRequest):
            self._methods[item.message.id] = item.message.method
            if item.message.method == "initialize" and item.metadata is None:
                # A server or proxy of the 2026-07-28 revision looks for it in every request, also in one that it
                # refuses. Of requests of that revision the SDK writes it itself.
                item.metadata = ClientMessageMetadata(headers={"Mcp-Method": "initialize"})

    def taken(self, item: SessionMessage) -> None:
        """Note that a message has gone out."""
        self._unanswered.sent(item.message)

    async def received(self, item: Item) -> Item | None:
        """Return a message that came in, repaired; None for one that is not for the session."""
        if isinstance(item, Exception):
            return item
        message = item.message
        if isinstance(message, JSONRPCNotification):
            if message.method in _UNHEARD:
                return None
            if (why := notification_misfit(message)) is not None:
                self._on_misfit(f"{message.method}: {why}")
                return None
        if not await self._unanswered.admits(message):
            return None
        if isinstance(message, JSONRPCError):
            if message.id is not None:
                self._methods.pop(message.id, None)
        elif isinstance(message, JSONRPCResponse) and (method := self._methods.pop(message.id, None)) is not None:
            found = repair(method, message.result, validation_error)
            message.result = found.result
            if found.dropped:
                self._on_dropped(method, found.dropped)
        return item


class _Observed(WrappedStream):
    def __init__(self, inner: Any, observer: Observer) -> None:
        super().__init__(inner)
        self._observer = observer


class _Reading(_Observed):
    async def receive(self) -> Item:
        while (item := await self._observer.received(cast("Item", await self._inner.receive()))) is None:
            pass
        return item

    def __aiter__(self) -> "_Reading":
        return self

    async def __anext__(self) -> Item:
        try:
            while (item := await self._observer.received(cast("Item", await self._inner.__anext__()))) is None:
                pass
            return item
        except StopAsyncIteration:
            self._observer.on_end()
            raise


class _Writing(_Observed):
    async def send(self, item: SessionMessage, /) -> None:
        self._observer.sent(item)
        try:
            await self._inner.send(item)
        finally:
            self._observer.taken(item)


class ObservedTransport:
    """A transport around another one."""

    def __init__(self, inner: AbstractAsyncContextManager[Any], observer: Observer) -> None:
        self._inner = inner
        self._observer = observer

    async def __aenter__(self) -> tuple[_Reading, _Writing]:
        reading, writing = await self._inner.__aenter__()
        return _Reading(reading, self._observer), _Writing(writing, self._observer)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


def observed(inner: AbstractAsyncContextManager[Any], observer: Observer) -> Transport:
    """`inner` with its traffic observed and repaired."""
    return cast("Transport", ObservedTransport(inner, observer))
