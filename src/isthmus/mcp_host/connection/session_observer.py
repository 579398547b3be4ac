"""Observer between a server and the SDK: repairs results before the SDK checks them, and leaves out unusable parts.

It costs a dictionary lookup for each message.
"""

from collections.abc import Callable

from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.methods import parse_server_notification, validate_server_result
from pydantic import ValidationError
from typing_extensions import override

from isthmus.mcp_host.connection.pending_requests import UnansweredRequests
from isthmus.mcp_host.results.repair import JsonObject, repair
from isthmus.mcp_host.transports.observed import Item, StreamObserver

_IGNORED = frozenset({"notifications/message", "notifications/resources/updated"})
"""Notifications without a handler; they are dropped before they are checked, so that a flood of them stays cheap."""

_PROGRESS = "notifications/progress"

_SCHEMA_VERSION = "2025-11-25"
"""Revision whose schema is used to check all messages; the checked fields are the same in the 2026 revisions."""


def validation_error(method: str, result: JsonObject) -> str | None:
    """Return the reason why the SDK would refuse a result; None if it would accept it."""
    try:
        validate_server_result(method, _SCHEMA_VERSION, result)
    except ValidationError as error:
        return _first_error(error)
    except KeyError:
        return None
    except RecursionError:
        return "it is nested too deeply"
    return None


def notification_error(message: JSONRPCNotification) -> str | None:
    """Return the reason why the SDK would refuse a notification; None if it would accept it or ignore its method."""
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


class SessionObserver(StreamObserver):
    """Observer of the messages of one session.

    ``on_end`` is called when the server sends no more messages. ``on_dropped`` is called with a method and the reasons
    why parts of its result were left out, ``on_left_out`` with the reason why a notification was left out.
    """

    def __init__(
        self,
        server: str,
        on_end: Callable[[], None],
        on_dropped: Callable[[str, tuple[str, ...]], None],
        on_left_out: Callable[[str], None],
    ) -> None:
        self._on_end = on_end
        self._on_dropped = on_dropped
        self._on_left_out = on_left_out
        self._methods: dict[str | int, str] = {}
        self._unanswered = UnansweredRequests(server)

    @override
    def sending(self, item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCRequest):
            self._methods[item.message.id] = item.message.method
            if item.message.method == "initialize" and item.metadata is None:
                # A server or proxy of the 2026-07-28 revision expects this header in every request, even in one that
                # it refuses. In requests of that revision the SDK sets it.
                item.metadata = ClientMessageMetadata(headers={"Mcp-Method": "initialize"})

    @override
    def sent(self, item: SessionMessage) -> None:
        self._unanswered.sent(item.message)

    @override
    def ended(self) -> None:
        self._on_end()

    @override
    async def received(self, item: Item) -> Item | None:
        if isinstance(item, Exception):
            return item
        message = item.message
        if isinstance(message, JSONRPCNotification):
            if message.method in _IGNORED:
                return None
            if (reason := notification_error(message)) is not None:
                self._on_left_out(f"{message.method}: {reason}")
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
