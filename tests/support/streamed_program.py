"""A copy of the loaded process in an event loop: its streams and its end, as of an ``asyncio.subprocess.Process``.

Programs of other kinds are started by ``asyncio.create_subprocess_exec``. Not here: what a program is asked, see
:mod:`support.serve_program` and :mod:`support.acp_program`.
"""

import asyncio
import os
import signal as signals
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager, closing
from functools import partial
from pathlib import Path

from support.loaded_program import ISTHMUS, LoadedProcess, LoadedProgram, shared_program

LINE_BYTES = 64 * 1024 * 1024
"""Maximum length of a line that is read."""


class StreamedProgram:
    """A running copy, with what tests use of an ``asyncio.subprocess.Process``; ``stdin`` is None if it has none."""

    def __init__(
        self, process: LoadedProcess, stdin: asyncio.StreamWriter | None, stdout: asyncio.StreamReader
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self._process = process

    @property
    def pid(self) -> int:
        """Its id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or minus the signal that ended it; None while it runs."""
        return self._process.poll()

    async def wait(self) -> int:
        """Wait until it has ended, and return the same."""
        if self._process.poll() is None:
            ended, loop = asyncio.Event(), asyncio.get_running_loop()
            # Of its own, because several may wait.
            descriptor = os.dup(self._process.fileno())
            loop.add_reader(descriptor, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(descriptor)
                os.close(descriptor)
        return self._process.wait()

    def send_signal(self, signal: int) -> None:
        """Send a signal, unless it has ended."""
        self._process.send_signal(signal)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signals.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signals.SIGKILL)


@asynccontextmanager
async def streamed_program(
    *arguments: str,
    folder: Path,
    errors: int = 2,
    environment: Mapping[str, str] | None = None,
    program: str = ISTHMUS,
    loaded: LoadedProgram | None = None,
    has_input: bool = True,
) -> AsyncGenerator[StreamedProgram]:
    """Start a copy that runs the module ``program``; kill it at the end if it still runs.

    `errors` is the descriptor of its error output. `environment` is by default that of the test, `loaded` the process
    of all tests.
    """
    copied = loaded or shared_program()
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        readable, writable = os.pipe()
        pipe = stack.enter_context(os.fdopen(readable, "rb", 0))
        output = os.fdopen(writable, "wb", 0)
        given = None
        if has_input:
            readable, writable = os.pipe()
            given = stack.enter_context(os.fdopen(writable, "wb", 0))
        else:
            readable = os.open(os.devnull, os.O_RDONLY)
        with output, os.fdopen(readable, "rb", 0) as taken:
            start = partial(
                copied.start,
                *arguments,
                streams=(taken.fileno(), output.fileno(), errors),
                folder=folder,
                environment=os.environ if environment is None else environment,
                program=program,
            )
            process = stack.enter_context(closing(await asyncio.to_thread(start)))
        reader = asyncio.StreamReader(limit=LINE_BYTES)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        writer = None
        if given is not None:
            # The reader has only the end of the pipe to report.
            protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
            to_write, _ = await loop.connect_write_pipe(lambda: protocol, given)
            writer = asyncio.StreamWriter(to_write, protocol, None, loop)
        running = StreamedProgram(process, writer, reader)
        try:
            yield running
        finally:
            running.kill()
            await running.wait()
            if writer is not None:
                if writer.transport.get_write_buffer_size():
                    writer.transport.abort()
                writer.close()
            transport.close()
            await asyncio.sleep(0)  # the transports close their pipes
