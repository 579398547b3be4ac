"""The transport to a server that is a local program: one JSON-RPC message per line, over its standard streams.

The SDK's own transport has no limit for lines, and fails on bytes that are not UTF-8. It waits forever for an answer
that it cannot parse, and reports neither exit code nor error output. The program leads its own process group, which
is ended with the connection, or by a guard if this process dies.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import cast

import anyio
from anyio.abc import AsyncResource
from mcp.shared.message import SessionMessage
from typing_extensions import override

from isthmus.encoding.line_splitter import Line, LineSplitter
from isthmus.mcp_host.config.server_config import StdioEndpoint
from isthmus.mcp_host.config.shell_variables import ShellVariables
from isthmus.mcp_host.connection.server_sandbox import ServerSandbox
from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.mcp_host.transports.messages import MAXIMUM_MESSAGE_BYTES, message_of
from isthmus.runtime.group_guard import MARK, group_guard, signal_followers
from isthmus.runtime.processes import end_process, start_process
from isthmus.runtime.server_chain import CHAIN
from isthmus.sandbox.confinement import Launch

EXIT_SECONDS = 1.0
"""Maximum wait in seconds for a server's exit code after its output has ended: a busy machine reports it late."""

INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", CHAIN)
"""Variables of the agent's environment that each server gets in addition to its own ``env``."""

_CHUNK = 256 * 1024
_FLOOD_BYTES = 4 * 1024
"""Minimum size in bytes of one chunk of error output that counts as a flood."""
_TURN_LINES = 20
"""Number of lines after which other tasks get a turn."""
_IDLE_SHARE = 4
"""Pause after a flood, as a multiple of the time to read it; the full pipe slows the server down in the meantime."""
MAXIMUM_JUNK_LINES = 1_000
MAXIMUM_JUNK_BYTES = 256 * 1024 * 1024
"""Maximum size in bytes of junk between two messages; more counts as a flood."""


def server_environment(
    environment: Mapping[str, str], own: Mapping[str, str], inherits: ShellVariables | None
) -> dict[str, str]:
    """Return the environment of a server: variables of the agent's environment, and its configured ones.

    By the rule ``inherits``, or a few of them alone if that is None.
    """
    few = {name: environment[name] for name in INHERITED if name in environment}
    return {**(inherits.given(environment) if inherits is not None else {}), **few, **own}


@contextlib.asynccontextmanager
async def stdio_streams(
    endpoint: StdioEndpoint,
    environment: Mapping[str, str],
    log: ServerLog,
    sandbox: ServerSandbox | None,
    exit_seconds: tuple[float, float],
    inherits: ShellVariables | None = None,
) -> AsyncGenerator["tuple[Incoming, OutgoingMessages]", None]:
    """Start a server, in `sandbox` unless that is None, and yield its streams; the server ends with the block.

    It gets variables of ``environment`` by the rule ``inherits``, or a few of them alone if that is None or it is in a
    sandbox.
    ``exit_seconds`` are the times in which it must end after its stdin is closed, and then after SIGTERM.

    Raises:
        OSError: it cannot be started.
        SandboxError: its required sandbox does not work.
    """
    stack = contextlib.AsyncExitStack()
    try:
        own = server_environment(environment, endpoint.env, inherits if sandbox is None else None)
        plain = Launch((endpoint.command, *endpoint.args), endpoint.cwd, own)
        launch = plain if sandbox is None else await sandbox.launch(plain, environment, log)
        stack.push_async_callback(asyncio.to_thread, launch.release)
        mark = secrets.token_hex(16)
        announce = await stack.enter_async_context(group_guard(mark, is_final=True))
        process = await stack.enter_async_context(_started(launch, log, mark, announce))
        reading_errors = asyncio.create_task(_read_errors(process, log))
        try:
            yield Incoming(process, log), OutgoingMessages(process)
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process, exit_seconds, is_wrapped=launch is not plain)
            reading_errors.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await stack.aclose()


@contextlib.asynccontextmanager
async def _started(
    launch: Launch, log: ServerLog, mark: str, announce: Callable[[int], None]
) -> AsyncGenerator[Process, None]:
    process = await start_process(
        *launch.command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=_CHUNK,
        cwd=launch.folder,
        env={**launch.environment, MARK: mark},
    )
    try:
        announce(process.pid)
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            await end_process(process)
        log.exit_code = process.returncode


async def _end(process: Process, exit_seconds: tuple[float, float], *, is_wrapped: bool) -> None:
    """End the server: close its stdin, then send SIGTERM, then SIGKILL. `_started` kills the rest of its group.

    ``is_wrapped``: the server runs in a sandbox, whose process ends after it.
    """
    if process.stdin is not None:
        process.stdin.close()
    for seconds, number in zip(exit_seconds, (signal.SIGTERM, signal.SIGKILL), strict=True):
        with anyio.move_on_after(seconds):
            await process.wait()
            return
        if is_wrapped and number == signal.SIGTERM:
            signal_followers(process.pid, number)
        else:
            _signal(process, number)


def _signal(process: Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class Incoming(AsyncResource):
    """The messages of the server, read on demand: there is no task or queue between the server and the session."""

    def __init__(self, process: Process, log: ServerLog) -> None:
        self._process = process
        self._output = cast("asyncio.StreamReader", process.stdout)
        self._log = log
        self._splitter = LineSplitter(MAXIMUM_MESSAGE_BYTES)
        self._lines: deque[Line] = deque()
        self._junk_lines = 0
        self._junk_bytes = 0
        self._work = 0.0

    def __aiter__(self) -> "Incoming":
        return self

    async def __anext__(self) -> SessionMessage:
        while True:
            while self._lines:
                if len(self._lines) % _TURN_LINES == 0:
                    await asyncio.sleep(0)
                if (message := self._message(self._lines.popleft())) is not None:
                    return message
            await self._pause_after_junk()
            data = await self._output.read(_CHUNK)
            if not data:
                # Wait for the exit code, so that the error can report it.
                with anyio.move_on_after(EXIT_SECONDS):
                    self._log.exit_code = await self._process.wait()
                raise StopAsyncIteration
            self._junk_bytes += len(data)
            began = time.monotonic()
            self._lines += self._splitter.feed(data)
            self._work += time.monotonic() - began

    def _message(self, line: Line) -> SessionMessage | None:
        began = time.monotonic()
        message = message_of(line, self._log)
        if message is not None:
            self._junk_lines = self._junk_bytes = 0
            self._work = 0.0
        else:
            self._junk_lines += 1
            self._work += time.monotonic() - began
        return message

    async def _pause_after_junk(self) -> None:
        """Pause before the next read, if the server writes nothing but junk."""
        work, self._work = self._work, 0.0
        if self._junk_lines > MAXIMUM_JUNK_LINES or self._junk_bytes > MAXIMUM_JUNK_BYTES:
            await asyncio.sleep(min(_IDLE_SHARE * work, 1.0))

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            EndOfStream: the server has closed its output.
        """
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    @override
    async def aclose(self) -> None:
        """Do nothing: the process is ended where it was started."""


class OutgoingMessages(AsyncResource):
    """The messages to the server. A message to a server that has ended is dropped: `Incoming` reports the end."""

    def __init__(self, process: Process) -> None:
        self._input = cast("asyncio.StreamWriter", process.stdin)

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message, and wait while the pipe to the server is full."""
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        with contextlib.suppress(ConnectionError):
            self._input.write(text.encode("utf-8", "replace") + b"\n")
            await self._input.drain()

    @override
    async def aclose(self) -> None:
        """Do nothing: the process is ended where it was started."""


async def _read_errors(process: Process, log: ServerLog) -> None:
    errors = cast("asyncio.StreamReader", process.stderr)
    while data := await errors.read(_CHUNK):
        began = time.monotonic()
        log.feed(data)
        if len(data) >= _FLOOD_BYTES:
            await asyncio.sleep(_IDLE_SHARE * (time.monotonic() - began))
