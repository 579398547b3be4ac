"""The loopback interface of this machine: its names, its ports and whose they are, and programs that must reach it.

Everything that the companion serves is there alone. A port outlives the discovery file of an editor that crashed, and
another user may listen there by then: a client that took that process for the editor would send it our token.
"""

import ipaddress
import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "::1")
"""Hosts of a URL that always mean this machine."""
ADDRESS: Final = "127.0.0.1"
PROBE_SECONDS: Final = 0.5
"""Maximum time in seconds for a port of this machine to accept a connection."""
PROBES_AT_ONCE: Final = 32
_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]", "host.docker.internal")
"""Hosts in the URLs of clients on this machine, or in a container on it."""
TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING: Final = "0A"
_ESTABLISHED: Final = "01"
_NOBODY_HERE: Final = 65_534
"""User id that the system shows for users that do not exist in this user namespace."""


def is_loopback(host: str) -> bool:
    """Return whether a host, as in a URL but without brackets, is this machine by its name or number."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_headers(port: int) -> tuple[str, ...]:
    """Return the ``Host`` headers that clients of a port of this machine send."""
    return tuple(f"{host}:{port}" for host in _HOSTS)


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


def rebind(former: Mapping[str, Any] | None) -> tuple[socket.socket, str] | None:
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


def listening_users(port: int, table: str) -> Iterator[int]:
    """Yield the ids of the users that listen on a port, from the text of ``/proc/net/tcp`` (proc(5)). Pure."""
    for line in table.splitlines()[1:]:
        match line.split():
            case [_, local, _, state, _, _, _, user, *_] if state == _LISTENING and user.isdecimal():
                if local.rpartition(":")[2] == f"{port:04X}":
                    yield int(user)
            case _:
                pass


def another_user_at(port: int, tables: Sequence[Path] = TABLES) -> str | None:
    """Return why a port must not be trusted (another user listens), or None if nothing speaks against it. Blocks.

    Only Linux tells; elsewhere, and across network namespaces, the user is unknown and the port is accepted.
    """
    ours = {os.getuid(), 0, _NOBODY_HERE}  # the superuser can read everything anyway
    for path in tables:
        with suppress(OSError):
            for user in listening_users(port, path.read_text(encoding="ascii", errors="replace")):
                if user not in ours:
                    return f"a process of another user (uid {user}) listens on port {port}"
    return None


def another_user_connects(client: int, server: int, tables: Sequence[Path] = TABLES) -> str | None:
    """Return why a connection from port ``client`` to our port ``server`` is not one of this user's. Blocks.

    Only Linux tells; elsewhere the user is unknown, and the connection is accepted. Where the system tells of other
    connections, one that it does not know is refused. Unlike in :func:`another_user_at` the superuser is another user:
    programs that pass connections on, such as Docker's, run as such.
    """
    users: set[int] = set()
    is_told = False
    for path in tables:
        with suppress(OSError):
            table = path.read_text(encoding="ascii", errors="replace")
            is_told = True
            users |= set(connecting_users(client, server, table))
    if not is_told or users == {os.getuid()}:
        return None
    found = ", ".join(map(str, sorted(users))) or "unknown"
    return f"expected a connection of the user {os.getuid()}, received one of the user {found}"


def connecting_users(client: int, server: int, table: str) -> Iterator[int]:
    """Yield the ids of the users whose connections lead from one port to another; see :func:`listening_users`. Pure."""
    for line in table.splitlines()[1:]:
        match line.split():
            case [_, local, remote, state, _, _, _, user, *_] if state == _ESTABLISHED and user.isdecimal():
                if (local.rpartition(":")[2], remote.rpartition(":")[2]) == (f"{client:04X}", f"{server:04X}"):
                    yield int(user)
            case _:
                pass


def terminal_environment(variables: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """Return ``base`` with the ``variables`` of the companion's servers, and loopback excepted from any proxy.

    Some CLIs send even a loopback WebSocket through a proxy that the environment names.
    """
    environment = dict(base) | dict(variables)
    for name, other in (("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")):
        # Programs read one of the two, so each gets what the other one holds.
        value = base.get(name) or base.get(other) or ""
        listed = [entry.strip() for entry in value.split(",") if entry.strip()]
        if listed != ["*"]:  # "*" disables proxies, but only if it stands alone
            listed += [host for host in LOOPBACK_NAMES if host not in listed]
        environment[name] = ",".join(listed)
    return environment
