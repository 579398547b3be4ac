"""A connection from its acceptance on, and the base class of protocols that report its token and its end."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any, cast

from typing_extensions import override

_STATE_KEY = "isthmus.token_shown"
"""Key in the ``state`` of an ASGI scope of a function to call when a token was shown."""


class ConnectionSlot:
    """One connection, compared by identity. It counts for ``address`` (see :func:`address_key`)."""

    def __init__(
        self,
        connection: socket.socket,
        address: str,
        token_shown: Callable[["ConnectionSlot"], None],
        left: Callable[["ConnectionSlot"], None],
    ) -> None:
        self.connection = connection
        self.address = address
        self.since = asyncio.get_running_loop().time()
        self.drop: Callable[[], None] = _nothing
        """Function that cuts the connection; each stage of the connection sets its own."""
        self._token_shown = token_shown
        self._left = left

    def show_token(self) -> None:
        """Record that the connection has shown a token: from now on it is not dropped for others."""
        self._token_shown(self)

    def leave(self) -> None:
        """Record that the connection is closed."""
        self._left(self)


class SlotProtocol(asyncio.Protocol):
    """Base class to be listed before the protocol that a :class:`~isthmus.listeners.listener.Listener` passes on to.

    Without a ``slot`` (under another server) it changes nothing.
    """

    slot: ConnectionSlot | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self.slot is not None:
            self.slot.drop = cast("asyncio.Transport", transport).abort
        super().connection_made(transport)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self.slot is not None:
            self.slot.leave()
        super().connection_lost(exc)


def with_slot(state: Mapping[str, Any], slot: ConnectionSlot) -> dict[str, Any]:
    """Return the ``state`` of an ASGI server for the requests of one connection."""
    return {**state, _STATE_KEY: slot.show_token}


def token_shown(scope: Mapping[str, Any]) -> None:
    """Record that the connection of an ASGI scope has shown a token; does nothing under another server."""
    state: Mapping[str, Any] = scope.get("state") or {}
    show = state.get(_STATE_KEY)
    if show is not None:
        show()


def _nothing() -> None:
    pass
