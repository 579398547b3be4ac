"""Loads Isthmus once, and runs it in a process of its own for each request: ``loading_program.py FD [MODULE...]``.

FD is a stream socket. A request is a length (8 bytes, big-endian) that comes with descriptors: a pipe, and a terminal
or the three standard streams; then a JSON object of that length: ``program``, a module whose ``main()`` to run or the
path of a script, ``arguments``, ``folder``, ``environment``, ``umask`` and ``is_job``, whether it runs as a job of a
new terminal.
The pipe gets two lines: ``began`` with the process id, and at its end ``ended`` with the exit code, or minus the
signal that ended it. This program ends when the socket is closed.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import termios
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

LOADED = (
    "isthmus.__main__",
    "anyio._backends._asyncio",
    "google.genai",
    "h11",
    "httpcore2",
    "isthmus.a2a.client.remote_agent",
    "isthmus.cli.acp",
    "isthmus.cli.companion",
    "isthmus.cli.connect",
    "isthmus.cli.doctor",
    "isthmus.cli.ide",
    "isthmus.cli.main",
    "isthmus.cli.mcp.serve",
    "isthmus.cli.mcp.servers",
    "isthmus.cli.run",
    "isthmus.cli.serve",
    "isthmus.agent.commands.registry",
    "isthmus.agent.commands.runner",
    "isthmus.programs.acp.front",
    "isthmus.programs.companion.page",
    "isthmus.cli.output.companion_texts",
    "isthmus.cli.arguments.file_location",
    "isthmus.programs.mcp.serving",
    "isthmus.programs.serve.serving",
    "isthmus.programs.companion.serving_editor",
    "isthmus.programs.setup.settings_trust",
    "isthmus.programs.setup.terminal_settings",
    "isthmus.editors.headless",
    "isthmus.editors.review_page.pending_reviews",
    "isthmus.ide.claude.server",
    "isthmus.ide.clients.asked_review",
    "isthmus.ide.control.commands",
    "isthmus.ide.control.control_client",
    "isthmus.ide.discovery.doctor",
    "isthmus.ide.gemini.server",
    "isthmus.ide.running.host",
    "isthmus.ide.running.restart_state",
    "isthmus.journal.sqlite.journal",
    "isthmus.mcp_host.connection.discover_probe",
    "isthmus.mcp_host.connection.session",
    "isthmus.mcp_host.host",
    "isthmus.models.gemini",
    "isthmus.models.endpoint.http",
    "isthmus.models.scripted.scripted",
    "isthmus.models.streaming",
    "isthmus.sandbox.finding",
    "isthmus.terminal.headless.headless",
    "isthmus.terminal.interactive.interactive",
    "isthmus.terminal.screen.markdown",
    "isthmus.terminal.interactive.own_commands",
    "isthmus.terminal.prompt.prompt_toolkit_input",
    "isthmus.terminal.screen.render",
    "isthmus.terminal.interactive.session_list",
    "mcp",
    "prompt_toolkit.input.vt100",
    "support.front_program",
    "uvicorn.protocols.http.auto",
    "yaml",
)
"""Modules that sessions, servers, companions and commands need, and that import most of the others; not those of other
editors, nor the SDKs of other providers than Gemini's, which fewer tests use."""
TESTS = Path(__file__).resolve().parent.parent
LENGTH_BYTES = 8


def main() -> None:
    """Serve requests to the end of the socket."""
    sys.path.append(str(TESTS))
    for name in sys.argv[2:] or LOADED:
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
        head, descriptors, _, _ = socket.recv_fds(requests, LENGTH_BYTES, 4)
        if not head:
            return
        pipe, *streams = descriptors
        request = json.loads(_exactly(requests, int.from_bytes(head, "big")))
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # until it is known whose end it tells
        assert threading.active_count() == 1, f"{threading.enumerate()}: a copy has none of the threads"
        if not (pid := os.fork()):
            for descriptor in (requests.detach(), *pipes.values()):
                os.close(descriptor)
            _become_program(streams, pipe, **request)
        pipes[pid] = pipe
        for stream in streams:
            os.close(stream)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _exactly(requests: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := requests.recv(size - len(data))):
        data += more
    return data


def _become_program(
    streams: list[int],
    pipe: int,
    program: str,
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    umask: int,
    is_job: bool,
) -> NoReturn:
    """Do what the start of a process does, in a new terminal if it is the only stream, and run the program in it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    if not is_job:
        os.setsid()
    if len(streams) == 1:
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
        streams *= 3
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in set(streams):
        os.close(stream)
    os.write(pipe, b"began %d\n" % os.getpid())
    os.close(pipe)
    os.chdir(folder)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv[1:] = arguments
    # As Python opens the standard streams.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", 1 if os.isatty(1) else -1, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    run = partial(_run, program)
    if is_job:
        _end(importlib.import_module("support.terminal_job").run_as_job(run))
    run()


def _run(program: str) -> NoReturn:
    try:
        if program.endswith(".py"):
            sys.argv[0] = program
            sys.path.insert(0, str(Path(program).parent))
            runpy.run_path(program, run_name="__main__")
            code = 0
        else:
            module: Any = importlib.import_module(program)
            code = module.main()
    except SystemExit as end:
        code = end.code
    assert code is None or isinstance(code, int), f"expected an exit code, not {code!r}"
    _end(code or 0)


def _end(code: int) -> NoReturn:
    """Do what Python does at its end, but for the modules: to take them down takes longer than many a command."""
    threads: Any = threading
    functions: Any = atexit
    threads._shutdown()
    functions._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # such as a terminal that was hung up
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
