"""A flood of connections to a port: each sends a few bytes or none and is silent; one that is cut is opened again.

A program, so that its descriptors and its work are not the test's: ``connection_flood.py PORT CONNECTIONS HEX
ADDRESS...`` connects from the addresses in turn and ends with its standard input. HEX are the bytes. It prints one line
of JSON when every connection has been opened once, and another one at the end.
"""

import contextlib
import errno
import json
import resource
import selectors
import socket
import sys


class Flood:
    """The connections of one flood."""

    def __init__(self, port: int, beginning: bytes, addresses: list[str]) -> None:
        self._beginning = beginning
        self._target = ("127.0.0.1", port)
        self._addresses = addresses
        self._selector = selectors.DefaultSelector()
        self.opened = 0
        self.cut = 0

    def open_one(self) -> None:
        """Open one connection."""
        connection = socket.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT: as many ports as there are targets
        connection.bind((self._addresses[self.opened % len(self._addresses)], 0))
        self.opened += 1
        if connection.connect_ex(self._target) not in (0, errno.EINPROGRESS):
            connection.close()
            self.cut += 1
            return
        self._selector.register(connection, selectors.EVENT_WRITE if self._beginning else selectors.EVENT_READ)

    def work(self, count: int) -> None:
        """Keep `count` connections open, until standard input ends."""
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        started = False
        while True:
            missing = count + 1 - len(self._selector.get_map())
            for _ in range(min(missing, 200)):
                self.open_one()
            if not started and self.opened >= count:
                started = True
                print(json.dumps({"opened": self.opened, "cut": self.cut}), flush=True)
            for key, event in self._selector.select(0.01):
                if key.fileobj is sys.stdin:
                    return
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                if event & selectors.EVENT_WRITE:
                    self._connected(connection)
                else:
                    self._happened(connection)

    def _connected(self, connection: socket.socket) -> None:
        try:
            connection.send(self._beginning)
        except OSError:
            self._happened(connection)
        else:
            self._selector.modify(connection, selectors.EVENT_READ)

    def _happened(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if connection.recv(65536):
                return
        self._selector.unregister(connection)
        connection.close()
        self.cut += 1


def main() -> None:
    """Run the flood that the command line asks for."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    port, count, beginning, *addresses = sys.argv[1:]
    flood = Flood(int(port), bytes.fromhex(beginning), addresses)
    flood.work(int(count))
    print(json.dumps({"opened": flood.opened, "cut": flood.cut}), flush=True)


if __name__ == "__main__":
    main()
