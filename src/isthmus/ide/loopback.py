"""The loopback interface, the only one on which servers of the companion listen."""

import os
import socket
from collections.abc import Iterable
from contextlib import suppress

from isthmus.encoding.codec import JsonObject

ADDRESS = "127.0.0.1"
PROBE_SECONDS = 0.5
"""Maximum time in seconds for a port of this machine to accept a connection."""
PROBES_AT_ONCE = 32
HOSTS = ("localhost", "127.0.0.1", "[::1]", "host.docker.internal")
"""Names under which a client on this machine, or in a container on it, reaches the loopback interface."""


def hosts(port: int) -> tuple[str, ...]:
    """Return the possible ``Host`` headers of such a client."""
    return tuple(f"{host}:{port}" for host in HOSTS)


def bind(port: int) -> socket.socket:
    """Return a socket that is bound to ``port`` (0: any that is free) and that no child process inherits.

    Raises:
        OSError: the port is taken, or not allowed.
        OverflowError: ``port`` is out of range.
    """
    # With the protocol named, asyncio turns Nagle's algorithm off; without it each answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port))
    except (OSError, OverflowError):
        listener.close()
        raise
    os.set_inheritable(listener.fileno(), False)
    return listener


def rebind(former: JsonObject | None) -> tuple[socket.socket, str] | None:
    """Return a socket on the port of the former run, and its token; ``former`` is the state that the server kept.

    Return None if nothing usable was kept, or another process has taken the port.
    """
    port, token = (former or {}).get("port"), (former or {}).get("token")
    if isinstance(port, int) and isinstance(token, str) and token:
        with suppress(OSError, OverflowError):
            return bind(port), token
    return None


def open_ports(ports: Iterable[int]) -> frozenset[int]:
    """Return the ports on which a process listens. Blocks for a second at most."""
    from concurrent.futures import ThreadPoolExecutor

    def accepts(port: int) -> bool:
        with suppress(OSError), socket.create_connection((ADDRESS, port), PROBE_SECONDS):
            return True
        return False

    tried = sorted(ports)
    with ThreadPoolExecutor(PROBES_AT_ONCE) as pool:
        return frozenset(port for port, is_open in zip(tried, pool.map(accepts, tried), strict=True) if is_open)
