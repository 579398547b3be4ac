"""``isthmus serve`` as a process of its own, with a scripted model."""

import asyncio
import os
import re
import signal as signals
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol

from isthmus.a2a import RemoteAgent
from support.loaded_program import ISTHMUS, LoadedProcess, LoadedProgram
from support.remote_agents import remote_agent

READY = "A2A server ready at "

EDIT_SCRIPT = """
name: practice
scenarios:
  - prompt: (?i)greet
    replies:
      - thought: "**Write the file.** It does not exist yet."
        call: {name: write_file, arguments: {file_path: '{{workspace}}/greeting.txt', content: "hello\\n"}}
      - text: I wrote the greeting.
  - prompt: '.'
    replies:
      - text: 'You said: {{prompt}}'
"""
SILENT_EDIT_SCRIPT = re.sub(r"- thought: .*\n +", "- ", EDIT_SCRIPT)
"""The same without a thought."""


class ServerProcess(Protocol):
    """A process, with what the tests use of an ``asyncio.subprocess.Process``."""

    @property
    def pid(self) -> int:
        """Its id."""
        ...

    @property
    def returncode(self) -> int | None:
        """The exit code, or minus the signal that ended it; None while it runs."""
        ...

    async def wait(self) -> int:
        """Wait until it has ended, and return the same."""
        ...

    def send_signal(self, signal: int) -> None:
        """Send a signal."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""


class _LoadedServer:
    """The copy of a loaded process as a :class:`ServerProcess`."""

    def __init__(self, process: LoadedProcess) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    async def wait(self) -> int:
        if self._process.poll() is None:
            ended, loop = asyncio.Event(), asyncio.get_running_loop()
            loop.add_reader(self._process, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(self._process)
        return self._process.wait()

    def send_signal(self, signal: int) -> None:
        self._process.send_signal(signal)

    def terminate(self) -> None:
        self.send_signal(signals.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signals.SIGKILL)


@dataclass(frozen=True, slots=True)
class ServeProgram:
    """A server that has reported that it is ready."""

    process: ServerProcess
    url: str
    token: str

    def client(self) -> AbstractAsyncContextManager[RemoteAgent]:
        """Return a client of it."""
        return remote_agent(self.url, self.token)

    async def end(self, number: int) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), 60)


@asynccontextmanager
async def serve_program(
    folder: Path,
    workspace: Path,
    *arguments: str,
    script: str = EDIT_SCRIPT,
    environment: Mapping[str, str] | None = None,
    loaded: LoadedProgram | None = None,
    program: str = ISTHMUS,
) -> AsyncGenerator[ServeProgram]:
    """Start the server with its script, data and token in ``folder``; end it afterwards in any case.

    With `loaded` it is a copy of that process, which runs ``program``; otherwise Python is started.
    """
    (folder / "script.yaml").write_text(script, encoding="utf-8")
    token_file = folder / "token"
    options = (
        *("serve", "--port", "0", "--no-ide"),
        *("--token-file", str(token_file), "--data-dir", str(folder / "data"), "--workspace", str(workspace)),
        *("-m", f"scripted:{folder / 'script.yaml'}", *arguments),
    )
    variables = {**os.environ, **(environment or {})}
    async with AsyncExitStack() as stack:
        log = stack.enter_context((folder / "serve.log").open("ab"))
        if loaded is None:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "isthmus", *options),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                cwd=folder,
                env=variables,
            )
            assert process.stdout is not None
            output = process.stdout
        else:
            process, output = await _copied(
                partial(loaded.start, program=program), stack, options, folder, variables, log
            )
        try:
            line = (await asyncio.wait_for(output.readline(), 30)).decode().rstrip("\n")
            assert line.startswith(READY), f"{line!r}; {(folder / 'serve.log').read_text(encoding='utf-8')}"
            token = token_file.read_text(encoding="utf-8").strip()
            yield ServeProgram(process, line.removeprefix(READY), token)
        finally:
            if process.returncode is None:
                process.terminate()
                try:
                    await asyncio.wait_for(process.wait(), 30)
                except TimeoutError:
                    process.kill()
                    await process.wait()


async def _copied(
    copy: Callable[..., LoadedProcess],
    stack: AsyncExitStack,
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    log: BinaryIO,
) -> tuple[ServerProcess, asyncio.StreamReader]:
    """Start a copy of a loaded process, and return it with its output; both are closed with the stack."""
    readable, writable = os.pipe()
    pipe = stack.enter_context(os.fdopen(readable, "rb", 0))
    with Path(os.devnull).open("rb") as nothing, os.fdopen(writable, "wb") as output:
        streams = (nothing.fileno(), output.fileno(), log.fileno())
        start = partial(copy, streams=streams, folder=folder, environment=environment)
        process = stack.enter_context(closing(await asyncio.to_thread(start, *arguments)))
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    stack.callback(transport.close)
    return _LoadedServer(process), reader
