"""Whether a process runs below an attached agent: then it does not speak for the person.

The kernel says who is at the other end of the control socket, and which of its ancestors holds a connection to our MCP
port. A guard against an agent that answers its own question, not a wall against a hostile program of the same user.
"""

import socket
import struct
import sys
from contextlib import suppress

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


def attached_agent_above(pid: int, port: int) -> str | None:
    """The process ``pid`` or an ancestor that is connected to ``port``, as ``NAME (process ID)``; None: no such."""
    import psutil  # loaded at the first decision, not at start

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for candidate in [process, *process.parents()]:
            with suppress(psutil.Error):
                for connection in candidate.net_connections(kind="tcp"):
                    if (
                        connection.raddr
                        and connection.raddr.port == port
                        and connection.status == psutil.CONN_ESTABLISHED
                    ):
                        return f"{candidate.name()} (process {candidate.pid})"
    return None
