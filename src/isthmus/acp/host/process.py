"""The process of an agent: its streams, its error output in the log, and its end with everything that it started.

Not here: the messages on its streams, see :mod:`isthmus.acp.host.agent_session`.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Self, cast

from isthmus.errors import IsthmusError
from isthmus.runtime.group_guard import MARK, group_guard
from isthmus.runtime.processes import end_process, start_process
from isthmus.text.visible import visible_line, with_ellipsis

CHUNK_BYTES = 256 * 1024
LOGGED_CHARACTERS = 2000
"""Maximum number of characters of one line of error output that are logged."""

log = logging.getLogger(__name__)


class AgentStartError(IsthmusError):
    """An agent's program that cannot be started."""


class AgentProcess:
    """A running agent. It ends with the context that started it."""

    def __init__(self, process: Process, name: str) -> None:
        self._process = process
        self._name = name
        self._writing = asyncio.Lock()

    @property
    def exit_text(self) -> str:
        """Words for its end, such as "with exit code 1"; empty while it runs."""
        code = self._process.returncode
        if code is None:
            return ""
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"

    async def write(self, data: bytes) -> None:
        """Write to its standard input, and wait while the pipe is full.

        Raises:
            OSError: it does not read any more.
        """
        pipe = cast("asyncio.StreamWriter", self._process.stdin)
        async with self._writing:
            pipe.write(data)
            await pipe.drain()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield its standard output until that ends."""
        output = cast("asyncio.StreamReader", self._process.stdout)
        while data := await output.read(CHUNK_BYTES):
            yield data

    async def log_errors(self, maximum_lines: int) -> None:
        """Write its error output to the log, up to a number of lines; read the rest, so that it does not block."""
        errors = cast("asyncio.StreamReader", self._process.stderr)
        left, rest = maximum_lines, b""
        while data := await errors.read(CHUNK_BYTES):
            if left <= 0:
                continue
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[-LOGGED_CHARACTERS:]
            for line in lines[:left]:
                text = line[: 4 * LOGGED_CHARACTERS].decode("utf-8", "replace").strip()
                if text:
                    log.info("%s: %s", self._name, with_ellipsis(visible_line(text), LOGGED_CHARACTERS))
            left -= len(lines)
            if left <= 0:
                log.warning("%s: further error output is not logged", self._name)

    async def end(self, seconds: float) -> None:
        """Close its standard input, then send SIGTERM to its group; the context kills what is left."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
                return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()

    async def wait(self, seconds: float) -> None:
        """Wait for its exit code, which a busy machine reports late."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()

    @classmethod
    @contextlib.asynccontextmanager
    async def started(
        cls, command: Sequence[str], folder: Path, environment: Mapping[str, str], name: str
    ) -> AsyncGenerator[Self]:
        """Start an agent, and end it with its whole group and all descendants that can be found.

        Raises:
            AgentStartError: it cannot be started.
        """
        mark = secrets.token_hex(16)
        async with group_guard(mark, is_final=True) as announce:
            try:
                process = await start_process(
                    *command,
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=PIPE,
                    limit=CHUNK_BYTES,
                    cwd=folder,
                    env={**environment, MARK: mark},
                )
            except OSError as error:
                if str(error.filename) == str(folder):
                    raise AgentStartError(f"the folder {folder} of the session does not exist") from error
                reason = error.strerror or str(error)
                raise AgentStartError(f"the agent's program {command[0]!r} cannot be started: {reason}") from error
            try:
                announce(process.pid)
                yield cls(process, name)
            finally:
                await end_process(process)
