"""Decides whether a process may answer for the user: not if it is below an attached agent or has no user terminal.

The kernel reports the process at the other end of the control socket, and which of its ancestors are connected to our
ports; processes of ``companion exec`` are known as well. A process that left its ancestors (``setsid``, a double fork,
``tmux new -d``) still lacks a place where the user could have typed the command: a foreground job of a terminal, under
a shell with job control. This protects against agents that answer their own questions, but not against a hostile
program of the same user, which can type into its own terminals.
"""

import os
import socket
import struct
import sys
from collections.abc import Container, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.network.loopback import ADDRESS
from isthmus.record import record

if TYPE_CHECKING:
    from psutil import Process

AGENT_MARKS = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CURSOR_AGENT", "GEMINI_CLI", "ISTHMUS_AGENT", "QWEN_CODE")
"""Variables that agents set for their commands; the agent of Isthmus sets ISTHMUS_AGENT."""
_DARWIN_SOL_LOCAL = 0
_DARWIN_LOCAL_PEERPID = 2


def peer_process(connection: socket.socket) -> int | None:
    """Return the process id at the other end of a Unix socket; None if the system does not report it."""
    with suppress(OSError):
        if sys.platform == "darwin":
            return int(connection.getsockopt(_DARWIN_SOL_LOCAL, _DARWIN_LOCAL_PEERPID))
        if sys.platform == "linux":
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", credentials)[0])
    return None


def attached_agent_above(
    pid: int, ports: Container[int], agents: Container[int] = (), *, address: str = ADDRESS, itself: bool = True
) -> str | None:
    """Return the nearest agent among ``pid`` and its ancestors, as ``NAME (process ID)``; None if there is none.

    Without ``itself``, only its ancestors are looked at. Agents are the processes in ``agents``, and those connected to
    one of our ``ports`` at our ``address``.
    """
    import psutil  # loaded at the first decision, not at start

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for candidate in [*([process] if itself else []), *process.parents()]:
            if candidate.pid in agents or _is_connected(candidate, ports, address):
                return f"{candidate.name()} (process {candidate.pid})"
    return None


def agent_behind_browser(pid: int, ports: Container[int], agents: Container[int] = ()) -> str | None:
    """Return the agent that started the program at the other end of a page, or the mark of one; None if it is a user's.

    The arguments are as of :func:`attached_agent_above`. A user's browser may have no terminal.
    """
    if (agent := attached_agent_above(pid, ports, agents)) is not None:
        return agent
    mark = _mark_of(pid)
    return f"an agent (the environment of process {pid} has {mark})" if mark is not None else None


def process_of_connection(client: int, server: int) -> int | None:
    """Return the process of this user with a TCP connection from port ``client`` to our port ``server``. Blocks.

    None if there is none, as of a browser on another machine, or if the system does not report it.
    """
    import psutil

    ports = (client, server)
    with suppress(psutil.Error, OSError):
        for found in psutil.net_connections("tcp"):
            if found.laddr and found.raddr and (found.laddr.port, found.raddr.port) == ports:
                return found.pid
        return None
    for process in psutil.process_iter():  # macOS tells only the superuser of all processes at once
        with suppress(psutil.Error):
            for found in process.net_connections(kind="tcp"):
                if found.laddr and found.raddr and (found.laddr.port, found.raddr.port) == ports:
                    return process.pid
    return None


def doubt_about(pid: int, agents: Iterable[int] = ()) -> str | None:
    """Return a clause why this process may have sent a command without the user; None if there is no doubt.

    ``agents`` are the process ids of attached agents.
    """
    job = _job_of(pid)
    if job is None:
        return None  # the system does not report it
    for candidate in (pid, job.session):
        if (mark := _mark_of(candidate)) is not None:
            return f"the environment of process {candidate} has {mark}, as agents set it"
    if not job.has_terminal:
        return "it has no terminal"
    if job.group == job.session:
        return "it was not typed into the shell of a terminal: the terminal was opened for this command alone"
    if job.foreground not in (None, job.group):
        return "it runs in the background of its terminal"
    if any(_group_of(agent) == job.group for agent in agents):
        return "it runs in the terminal that an agent has just now"
    return None


def connected_agents(ports: Container[int]) -> frozenset[int]:
    """Return the ids of this user's processes that are connected to one of our ports."""
    import psutil

    return frozenset(process.pid for process in psutil.process_iter() if _is_connected(process, ports, ADDRESS))


def _mark_of(pid: int) -> str | None:
    import psutil

    with suppress(psutil.Error, OSError, ValueError):
        environment = psutil.Process(pid).environ()
        return next((name for name in AGENT_MARKS if environment.get(name)), None)
    return None


@record
class _Job:
    """Job of a process in its terminal; ``foreground`` is the group in the foreground, None if not reported."""

    group: int
    session: int
    has_terminal: bool
    foreground: int | None


def _job_of(pid: int) -> _Job | None:
    if sys.platform == "linux":
        with suppress(OSError, ValueError):
            # Fields after the name (which may be any text): state, parent, group, session, terminal, foreground group
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            group, session, terminal, foreground = map(int, fields[2:6])
            return _Job(group, session, terminal != 0, foreground)
        return None
    if os.name != "posix":
        return None
    import psutil

    with suppress(psutil.Error, OSError):
        terminal = psutil.Process(pid).terminal()
        return _Job(os.getpgid(pid), os.getsid(pid), terminal is not None, None)
    return None


def _group_of(pid: int) -> int | None:
    with suppress(OSError):
        return os.getpgid(pid)
    return None


def _is_connected(process: "Process", ports: Container[int], address: str) -> bool:
    import psutil

    with suppress(psutil.Error):
        for connection in process.net_connections(kind="tcp"):
            remote = connection.raddr
            # A remote login may use any port at the other end; IPv6 sockets report ::ffff:127.0.0.1.
            is_ours = remote and remote.port in ports and remote.ip.endswith(address)
            if is_ours and connection.status == psutil.CONN_ESTABLISHED:
                return True
    return False
