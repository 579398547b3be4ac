"""Accepts connections on a bound socket, and passes each on to a protocol once its request may be whole.

Connections that have not shown a token are limited in total and per address: the oldest is dropped for the newest.
Connections without a whole request are counted separately, so that they never displace one with a request. A connection
with a token is never dropped. If descriptors run out, accepting pauses and one line is logged; asyncio itself would log
a traceback for each connection and stop accepting for a second.
"""

import asyncio
import errno
import logging
import socket
import ssl
import struct
import sys
from collections.abc import Callable
from contextlib import suppress

from typing_extensions import override

from isthmus.listeners.beginnings import (
    LONGEST,
    Beginning,
    Foreign,
    Partial,
    ReadBeginning,
    Whole,
    any_beginning,
    tls_beginning,
)
from isthmus.listeners.connection_slot import ConnectionSlot, SlotProtocol
from isthmus.listeners.limits import ListenerLimits, descriptor_limit
from isthmus.listeners.logs import Occurrence
from isthmus.listeners.oldest_first import OldestFirst, address_key
from isthmus.listeners.silence import Watch, best_watch

BACKLOG = 4096
"""Maximum number of connections that wait in the kernel; a flood of them is accepted and dropped in order."""
BATCH = 32
"""Maximum number of connections accepted in a row before other work of the event loop has its turn."""

_DESCRIPTORS_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""Value of SO_LINGER with which a dropped connection leaves no state in the kernel."""

_log = logging.getLogger(__name__)


class Listener(asyncio.AbstractServer):
    """Acceptor on ``listener`` from :meth:`start_serving` to :meth:`close`; ``make_protocol`` makes each protocol.

    ``name`` is its name in the log; ``read_beginning`` returns whether a connection has sent a request.
    """

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[ConnectionSlot], SlotProtocol],
        *,
        name: str,
        limits: ListenerLimits,
        tls: ssl.SSLContext | None = None,
        read_beginning: ReadBeginning = any_beginning,
    ) -> None:
        self._listener = listener
        self._make_protocol = make_protocol
        self._name = name
        self._limits = limits
        self._tls = tls
        self._read_beginning = tls_beginning if tls is not None else read_beginning
        self._watch: Watch | None = None
        self._maximum = max(4, int(descriptor_limit() * limits.descriptor_share))
        unproven = max(1, min(limits.maximum_unproven, self._maximum // 3))
        per_address = max(1, unproven * 3 // 4)
        self._silent = OldestFirst[ConnectionSlot](unproven, per_address)
        self._speaking = OldestFirst[ConnectionSlot](unproven, per_address)
        self._slots: set[ConnectionSlot] = set()
        self._room = asyncio.Event()
        self._accepting: asyncio.Task[None] | None = None
        self._passing: set[asyncio.Task[None]] = set()
        self._next_look: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._is_deferring = False
        self._dropped = Occurrence(
            _log,
            f"{name}: more connections without a token than are kept ({unproven}, {per_address} of one address); the"
            " oldest are dropped",
        )
        self._paused = Occurrence(_log, f"{name}: all descriptors are in use; connections wait until one is closed")

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """The listening socket, as in :class:`asyncio.Server`; empty once it is closed."""
        return () if self._is_closed else (self._listener,)

    @override
    def get_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    @override
    def is_serving(self) -> bool:
        return self._accepting is not None and not self._is_closed

    async def start_serving(self) -> None:
        """Listen and accept."""
        if self._accepting is None:
            self._listener.listen(BACKLOG)
            if sys.platform == "linux":
                with suppress(OSError):
                    self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, self._limits.defer_seconds)
                    self._is_deferring = self._limits.defer_seconds > 0
            self._listener.setblocking(False)
            self._watch = best_watch(asyncio.get_running_loop())
            self._accepting = asyncio.create_task(self._accept())
            self._look_at_silent()

    def close(self) -> None:
        """Stop accepting connections, and close those without a whole request; the others stay."""
        if self._is_closed:
            return
        self._is_closed = True
        for waiting in (self._accepting, self._next_look):
            if waiting is not None:
                waiting.cancel()
        for task in tuple(self._passing):
            task.cancel()
        while (slot := self._silent.oldest()) is not None:
            self._drop(slot)
        if self._watch is not None:
            self._watch.close()
        self._listener.close()

    async def wait_closed(self) -> None:
        """Wait until the work of :meth:`close` is done."""
        tasks = [task for task in (self._accepting, *self._passing) if task is not None]
        if self._is_closed and tasks:
            await asyncio.wait(tasks)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._make_room()
            try:
                self._accepted(*await loop.sock_accept(self._listener))
                for _ in range(BATCH - 1):  # more waiting connections, each in a third of the time
                    await self._make_room()
                    self._accepted(*self._listener.accept())
            except BlockingIOError:
                continue
            except OSError as error:
                await self._not_accepted(error)
            await asyncio.sleep(0)

    async def _make_room(self) -> None:
        """Wait until there is room for one more connection; drop one without a token if there is one."""
        while len(self._slots) >= self._maximum:
            if (slot := self._silent.oldest() or self._speaking.oldest()) is not None:
                self._make_way(slot)
                await asyncio.sleep(0)  # its descriptor is closed in the loop's next turn
                continue
            self._paused.note()
            self._room.clear()
            await self._room.wait()

    async def _not_accepted(self, error: OSError) -> None:
        if self._listener.fileno() < 0:
            raise error
        if error.errno in _DESCRIPTORS_EXHAUSTED:
            self._paused.note()
            for slot in (self._silent.oldest(), self._speaking.oldest()):
                self._make_way(slot)
        elif error.errno != errno.ECONNABORTED:
            _log.warning("%s could not accept a connection: %s", self._name, error)
        await asyncio.sleep(self._limits.pause_seconds)

    def _accepted(self, connection: socket.socket, address: tuple[str, int]) -> None:
        connection.setblocking(False)
        key = address_key(address[0])
        data = _peek(connection)
        if data is None:
            connection.close()
            return
        if not data and self._is_deferring and self._silent.is_full(key):
            # The kernel held it back until its time was over, so it is older than those that wait here. Such
            # connections come together, so they are dropped before anything is made for them, at a quarter of the cost.
            self._dropped.note(f", last one from {key}")
            _reset_on_close(connection)
            connection.close()
            return
        slot = ConnectionSlot(connection, key, self._token_shown, self._left)
        self._slots.add(slot)
        slot.drop = connection.close
        beginning = self._read_beginning(data)
        if isinstance(beginning, Partial) and self._is_watched(slot, data):
            self._make_way(self._silent.add(slot, key))
        else:
            self._begun(slot, beginning)

    def _is_watched(self, slot: ConnectionSlot, data: bytes) -> bool:
        """Watch for the rest of the request and return True; return False if the protocol has to wait for it."""
        connection, watch = slot.connection, self._watch
        if watch is None or (data and not watch.is_for_each_arrival):
            return False
        descriptor = connection.fileno()

        def hear(is_over: bool) -> None:
            data = _peek(connection)
            beginning = self._read_beginning(data) if data is not None else Foreign()
            if isinstance(beginning, Partial) and watch.is_for_each_arrival:
                if not is_over:
                    return
                beginning = Foreign()
            watch.discard(descriptor)
            self._silent.discard(slot)
            self._begun(slot, beginning)

        def drop() -> None:
            watch.discard(descriptor)
            connection.close()

        try:
            watch.add(descriptor, hear)
        except NotImplementedError:  # an event loop of Windows
            return False
        slot.drop = drop
        return True

    def _begun(self, slot: ConnectionSlot, beginning: Beginning) -> None:
        match beginning:
            case Partial() | Whole():
                self._pass_on(slot, slot.connection)
            case Foreign(answer):
                _say_last(slot.connection, answer)
                slot.drop = slot.connection.close
                self._drop(slot)

    def _pass_on(self, slot: ConnectionSlot, connection: socket.socket) -> None:
        if self._is_closed:
            self._drop(slot)
            return
        self._make_way(self._speaking.add(slot, slot.address))
        task = asyncio.create_task(self._passed_on(slot, connection))

        def cancel() -> None:
            task.cancel()

        slot.drop = cancel  # replaced by the protocol, once it has the connection
        self._passing.add(task)

        def passed(_: "asyncio.Task[None]") -> None:
            self._passing.discard(task)
            if task.cancelled():  # possibly before it began
                slot.leave()
                connection.close()

        task.add_done_callback(passed)

    async def _passed_on(self, slot: ConnectionSlot, connection: socket.socket) -> None:
        def protocol() -> SlotProtocol:
            made = self._make_protocol(slot)
            made.slot = slot
            return made

        loop = asyncio.get_running_loop()
        try:
            if self._tls is None:
                await loop.connect_accepted_socket(protocol, connection)
            else:
                await loop.connect_accepted_socket(
                    protocol, connection, ssl=self._tls, ssl_handshake_timeout=self._limits.head_seconds
                )
        except (OSError, TimeoutError):  # ssl.SSLError is an OSError
            slot.leave()
            connection.close()

    def _look_at_silent(self) -> None:
        """Close connections that have been silent for too long, and schedule the next check."""
        loop = asyncio.get_running_loop()
        for slot in self._silent.members():
            if loop.time() - slot.since >= self._limits.head_seconds:
                _say_last(slot.connection)
                self._drop(slot)
        seconds = min(self._limits.look_seconds, self._limits.head_seconds / 4)
        self._next_look = loop.call_later(seconds, self._look_at_silent)

    def _token_shown(self, slot: ConnectionSlot) -> None:
        self._speaking.discard(slot)

    def _left(self, slot: ConnectionSlot) -> None:
        self._silent.discard(slot)
        self._speaking.discard(slot)
        self._slots.discard(slot)
        self._room.set()

    def _make_way(self, slot: ConnectionSlot | None) -> None:
        """Drop the given connection, if any, in favour of another one."""
        if slot is not None:
            self._dropped.note(f", last one from {slot.address}")
            _reset_on_close(slot.connection)
            self._drop(slot)

    def _drop(self, slot: ConnectionSlot) -> None:
        slot.drop()
        self._left(slot)


def _peek(connection: socket.socket) -> bytes | None:
    """Return the bytes that have arrived without taking them from the kernel; None if the connection is closed."""
    try:
        return connection.recv(LONGEST, socket.MSG_PEEK) or None
    except (BlockingIOError, InterruptedError):
        return b""
    except OSError:
        return None


def _say_last(connection: socket.socket, answer: bytes = b"") -> None:
    """Read all arrived bytes, as unread ones would turn the close into a reset; send what fits of ``answer``."""
    with suppress(OSError):
        connection.recv(LONGEST)
        connection.send(answer)


def _reset_on_close(connection: socket.socket) -> None:
    """Make a dropped connection leave no state in the kernel."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
