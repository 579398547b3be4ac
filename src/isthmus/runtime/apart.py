"""A program in two processes, so that its work goes on after the program has ended for the client that started it.

The client starts the first one, which starts the second one in a session of its own and passes it the standard
streams. Signals to the client's process group, and the end that clients force on their servers, reach the first
process alone. When the second one lets go of the streams, the first one ends. If the first one ends before, the second
one learns it at once. They are connected by a pair of sockets. Linux and macOS.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LET_GO = b"\0"


def run_apart(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command in a session of its own, with one more argument: the descriptor for :class:`FirstProcess`.

    Return its exit status, or 0 as soon as it lets go. A signal to end is passed on as the end of this process.

    Raises:
        OSError: the command cannot be run.
    """
    ours, theirs = socket.socketpair()
    with ours:

        def end(number: int, frame: object) -> None:
            with contextlib.suppress(OSError):
                ours.shutdown(socket.SHUT_WR)

        for number in _SIGNALS:
            signal.signal(number, end)
        with theirs:
            second = subprocess.Popen(
                [*command, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                env=dict(environment),
                start_new_session=True,
            )
        _drop(0, 1)  # or the client would not see that the second process has closed them
        try:
            has_let_go = ours.recv(1) == _LET_GO
        except OSError:
            has_let_go = False
    if has_let_go:
        second.returncode = 0  # it goes on, and nobody waits for it
        return 0
    status = second.wait()
    return status if status >= 0 else 128 - status


class FirstProcess:
    """The first process, as the second one sees it. ``descriptor`` is the last argument of the second one."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._socket = socket.socket(fileno=descriptor)

    def watch(self, on_end: Callable[[], Any]) -> None:
        """Call ``on_end`` in the running event loop when the first process has ended, or was told to end."""
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.remove_reader(self._socket)
            on_end()

        loop.add_reader(self._socket, ended)

    def let_go(self, *descriptors: int) -> None:
        """Let the first process end; from now on the standard streams and these descriptors lead nowhere."""
        asyncio.get_running_loop().remove_reader(self._socket)
        _drop(0, 1, 2, *descriptors)
        with self._socket, contextlib.suppress(OSError):  # it has ended
            self._socket.send(_LET_GO)


def _drop(*descriptors: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(nothing, descriptor, inheritable=descriptor <= 2)
    os.close(nothing)
