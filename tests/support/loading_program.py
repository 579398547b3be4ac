"""Loads Isthmus once, and runs it in a process of its own for each request: ``loading_program.py FD``.

FD is a stream socket. A request is a length (8 bytes, big-endian) that comes with two descriptors, a terminal and a
pipe; then a JSON object of that length: ``arguments``, ``folder`` and ``environment``. The pipe gets two lines:
``began`` with the process id, and at its end ``ended`` with the exit code, or minus the signal that ended it.
This program ends when the socket is closed.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import signal
import socket
import sys
import termios
import time
from typing import Any

LOADED = (
    "isthmus.__main__",
    "isthmus.cli.main",
    "isthmus.cli.run",
    "isthmus.agent.commands.registry",
    "isthmus.agent.commands.runner",
    "isthmus.app.settings_trust",
    "isthmus.app.terminal_settings",
    "isthmus.ide.clients.asked_review",
    "isthmus.models.http",
    "isthmus.models.scripted",
    "isthmus.models.streaming",
    "isthmus.sandbox.finding",
    "isthmus.terminal.headless",
    "isthmus.terminal.interactive",
    "isthmus.terminal.markdown",
    "isthmus.terminal.own_commands",
    "isthmus.terminal.prompt_toolkit_input",
    "isthmus.terminal.render",
    "isthmus.terminal.session_list",
    "prompt_toolkit.input.vt100",
    "yaml",
)
"""Modules that a session needs, and that import most of the others; those of editors and MCP servers are not here."""
LENGTH_BYTES = 8


def main() -> None:
    """Serve requests to the end of the socket. In the process of a program: run it, and return."""
    for name in LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    pipes: dict[int, int] = {}
    """The pipe of each running program, by its process id."""

    def on_end(number: int, frame: object) -> None:
        while pipes:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            pipe = pipes.pop(pid)
            with contextlib.suppress(BrokenPipeError):  # the test waits for it no longer
                os.write(pipe, b"ended %d\n" % os.waitstatus_to_exitcode(status))
            os.close(pipe)

    signal.signal(signal.SIGCHLD, on_end)
    requests = socket.socket(fileno=int(sys.argv[1]))
    while True:
        head, descriptors, _, _ = socket.recv_fds(requests, LENGTH_BYTES, 2)
        if not head:
            return
        terminal, pipe = descriptors
        request = json.loads(_exactly(requests, int.from_bytes(head, "big")))
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # until it is known whose end it tells
        if not (pid := os.fork()):
            for descriptor in (requests.detach(), *pipes.values()):
                os.close(descriptor)
            _become_program(terminal, pipe, **request)
            return
        pipes[pid] = pipe
        os.close(terminal)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _exactly(requests: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := requests.recv(size - len(data))):
        data += more
    return data


def _become_program(terminal: int, pipe: int, arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Do what the start of a process in a new terminal does, and run the program in it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(terminal, number)
    os.close(terminal)
    os.write(pipe, b"began %d\n" % os.getpid())
    os.close(pipe)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv[1:] = arguments
    # As Python opens the standard streams of a terminal.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", 1, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    program: Any = importlib.import_module(LOADED[0])
    program.main()


if __name__ == "__main__":
    main()
