"""An ACP agent whose messages another process writes: passes its standard streams on to a port of this machine.

The first argument is the port, see :mod:`support.acp_played`. It starts quickly: run it with ``python -I -S``.
"""

import os
import select
import socket
import sys

CHUNK_BYTES = 256 * 1024


def main() -> None:
    """Pass everything on in both directions until one side ends."""
    peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        ready, _, _ = select.select([0, peer], [], [])
        if 0 in ready:
            data = os.read(0, CHUNK_BYTES)
            if not data:
                return
            peer.sendall(data)
        if peer in ready:
            left = memoryview(peer.recv(CHUNK_BYTES))
            if not left:
                return
            while left:
                left = left[os.write(1, left) :]


if __name__ == "__main__":
    main()
