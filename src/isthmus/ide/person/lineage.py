"""Whether a process runs below an attached agent: then it does not speak for the person.

The kernel says who is at the other end of the control socket, and which of its ancestors holds a connection to one of
our ports; those that ``companion exec`` became are known besides. A guard against an agent that answers its own
question, not a wall against a hostile program of the same user.
"""

import socket
import struct
import sys
from collections.abc import Container
from contextlib import suppress
from typing import TYPE_CHECKING

from isthmus.ide.loopback import ADDRESS

if TYPE_CHECKING:
    from psutil import Process

_DARWIN_SOL_LOCAL = 0
_DARWIN_LOCAL_PEERPID = 2


def peer_process(connection: socket.socket) -> int | None:
    """The id of the process at the other end of a Unix socket; None where the system does not tell."""
    with suppress(OSError):
        if sys.platform == "darwin":
            return int(connection.getsockopt(_DARWIN_SOL_LOCAL, _DARWIN_LOCAL_PEERPID))
        if sys.platform == "linux":
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", credentials)[0])
    return None


def attached_agent_above(pid: int, ports: Container[int], agents: Container[int] = ()) -> str | None:
    """The process ``pid`` or an ancestor that is an agent, as ``NAME (process ID)``; None: there is none.

    An agent is one of ``agents``, or is connected to one of our ``ports``.
    """
    import psutil  # loaded at the first decision, not at start

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for candidate in [process, *process.parents()]:
            if candidate.pid in agents or _is_connected(candidate, ports):
                return f"{candidate.name()} (process {candidate.pid})"
    return None


def _is_connected(process: "Process", ports: Container[int]) -> bool:
    import psutil

    with suppress(psutil.Error):
        for connection in process.net_connections(kind="tcp"):
            remote = connection.raddr
            # A terminal that was logged into from elsewhere has any port there; IPv6 sockets say ::ffff:127.0.0.1.
            is_ours = remote and remote.port in ports and remote.ip.endswith(ADDRESS)
            if is_ours and connection.status == psutil.CONN_ESTABLISHED:
                return True
    return False
