"""Ends a uvicorn server as soon as its connections allow: uvicorn itself pauses, and looks ten times a second.

Deliberately not here: when a server ends, and its open streams, which whoever serves them ends first.
"""

import asyncio
import contextlib
import socket
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

LOOK_SECONDS = 0.005
"""How often connections are looked at that are about to end."""
LEAVE_SECONDS = 0.5
"""How long an answer that was cut off has to end."""


class ServerState(Protocol):
    """What uvicorn knows of what is under way."""

    @property
    def connections(self) -> set[Any]:
        """Its protocols, each with a ``shutdown()`` and its ``transport``."""
        ...

    @property
    def tasks(self) -> set["asyncio.Task[None]"]:
        """The requests that are answered."""
        ...


class Accepting(Protocol):
    """What accepts connections: an ``asyncio.Server``, or a Listener of :mod:`isthmus.listeners`."""

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """Those that listen."""
        ...

    def close(self) -> None:
        """Accept nothing more."""
        ...


class UvicornServer(Protocol):
    """A uvicorn server that has started."""

    force_exit: bool

    @property
    def servers(self) -> Sequence[Accepting]:
        """What accepts its connections."""
        ...

    @property
    def server_state(self) -> ServerState:
        """What is under way."""
        ...


async def end_connections(server: UvicornServer, listeners: Iterable[socket.socket], seconds: float) -> None:
    """Accept nothing more and end each connection when its answer is out; after ``seconds`` answers are cut off.

    ``force_exit`` cuts off at once.
    """
    await _stop_accepting(server.servers)
    for listener in listeners:
        listener.close()
    state = server.server_state
    told: set[Any] = set()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not server.force_exit:
                for connection in state.connections - told:
                    connection.shutdown()
                told |= state.connections
                if not state.connections and not state.tasks:
                    break
                await asyncio.sleep(LOOK_SECONDS)
    for connection in tuple(state.connections):
        connection.transport.abort()
    # Who answers notices that the client is gone, which ends it without an error; what does not is cancelled.
    if state.tasks:
        await asyncio.wait(tuple(state.tasks), timeout=LEAVE_SECONDS)
    for task in tuple(state.tasks):
        task.cancel()


async def _stop_accepting(servers: Iterable[Accepting]) -> None:
    """Close what listens, after the connections that are being accepted are there: asyncio would drop them unclosed."""
    loop = asyncio.get_running_loop()
    for server in servers:
        for listener in server.sockets:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # an event loop of another kind
                loop.remove_reader(listener)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for server in servers:
        server.close()
