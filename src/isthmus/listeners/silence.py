"""Watches connections for their next bytes without registering each one with the event loop.

With epoll, each arrival is reported once, and the bytes may stay in the kernel. Without it, a connection is reported
for as long as there is something to read, so it can be watched for its first byte only.
"""

import asyncio
import select
import sys
from collections.abc import Callable
from typing import Protocol, TypeAlias

from typing_extensions import override

AT_ONCE = 64
"""Maximum number of connections reported in a row before the event loop's other work has its turn."""

Heard: TypeAlias = Callable[[bool], None]
"""Callback for a connection that has sent bytes or ended; True if it will certainly send no more."""


class Watch(Protocol):
    """Connections that are watched for bytes."""

    is_for_each_arrival: bool
    """Whether a connection that has already sent bytes may be watched."""

    def add(self, descriptor: int, heard: Heard) -> None:
        """Watch a connection.

        Raises:
            NotImplementedError: this event loop cannot wait without reading.
        """
        ...

    def discard(self, descriptor: int) -> None:
        """Stop watching a connection, which must still be open."""
        ...

    def close(self) -> None:
        """Stop watching and release all resources."""
        ...


def best_watch(loop: asyncio.AbstractEventLoop) -> Watch:
    """Return the best watch that this system supports."""
    return EpollWatch(loop) if sys.platform == "linux" else LoopWatch(loop)


class LoopWatch(Watch):
    """A watch by a reader of the event loop for each connection."""

    is_for_each_arrival = False

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    @override
    def add(self, descriptor: int, heard: Heard) -> None:
        # The descriptor, not the socket: for an error that it expects, the loop would format the socket as text.
        self._loop.add_reader(descriptor, heard, False)

    @override
    def discard(self, descriptor: int) -> None:
        self._loop.remove_reader(descriptor)

    @override
    def close(self) -> None: ...


if sys.platform == "linux":

    class EpollWatch(Watch):
        """A watch by one epoll object for all connections; only this object is registered with the event loop."""

        is_for_each_arrival = True

        def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
            self._loop = loop
            self._epoll = select.epoll()
            self._heard: dict[int, Heard] = {}
            loop.add_reader(self._epoll.fileno(), self._report)

        @override
        def add(self, descriptor: int, heard: Heard) -> None:
            self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
            self._heard[descriptor] = heard

        @override
        def discard(self, descriptor: int) -> None:
            del self._heard[descriptor]
            self._epoll.unregister(descriptor)

        @override
        def close(self) -> None:
            if not self._epoll.closed:
                self._loop.remove_reader(self._epoll.fileno())
                self._epoll.close()

        def _report(self) -> None:
            ended = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
            for descriptor, events in self._epoll.poll(0, AT_ONCE):
                if (heard := self._heard.get(descriptor)) is not None:
                    heard(bool(events & ended))
