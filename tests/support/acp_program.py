"""``isthmus acp`` as a process of its own, with a scripted model and a client that shows every message."""

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.acp_front import FrontClient
from support.streamed_program import LINE_BYTES, StreamedProgram, streamed_program

MODEL = """
name: practice
scenarios:
  - prompt: 'slow'
    replies:
      - steps: [{text: 'Begun. '}, {delay: 1}, {text: 'Done.'}]
  - prompt: 'endless'
    replies:
      - steps: [{text: 'Begun. '}, {delay: 300}]
  - prompt: 'write'
    replies:
      - call: {name: write_file, arguments: {file_path: '{{workspace}}/new.txt', content: "one\\n"}}
      - text: 'Written.'
  - prompt: '.'
    replies:
      - text: 'You said: {{prompt}}'
"""


@dataclass(frozen=True, slots=True)
class AcpProgram:
    """A running program, and its client; ``errors`` is the file of its error output."""

    process: Process | StreamedProgram
    client: FrontClient
    errors: Path

    async def initialize(self) -> dict[str, Any]:
        """Say hello, and return the answer."""
        about = {} if self.client.version == 1 else {"info": {"name": "test", "version": "1"}, "capabilities": {}}
        return await self.client.call("initialize", protocolVersion=self.client.version, **about)

    async def end(self) -> int:
        """Close its input, and return its exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await asyncio.wait_for(self.process.wait(), 30)

    def no_traceback(self) -> None:
        """Fail if it has printed a traceback."""
        _, found, traceback = self.errors.read_text(encoding="utf-8").partition("Traceback")
        assert not found, traceback[:5000]


def acp_arguments(folder: Path) -> Sequence[str]:
    """Write the model's script below a folder, and return the arguments of the program."""
    script = folder / "script.yaml"
    script.write_text(MODEL, encoding="utf-8")
    return ("acp", "--in-process", "-m", f"scripted:{script}", "--data-dir", str(folder / "data"))


@asynccontextmanager
async def _running(
    command: Sequence[str] | None, arguments: Sequence[str], folder: Path, errors: int
) -> AsyncGenerator[Process | StreamedProgram]:
    """Start a command, or a copy of the loaded process; kill it at the end if it still runs."""
    if command is None:
        async with streamed_program(*arguments, folder=folder, errors=errors) as copy:
            yield copy
        return
    process = await asyncio.create_subprocess_exec(
        *command, *arguments, cwd=folder, stdin=PIPE, stdout=PIPE, stderr=errors, limit=LINE_BYTES
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def acp_program(
    folder: Path, command: Sequence[str] | None = None, *more: str, reads: bool = True, version: int = 1
) -> AsyncGenerator[AcpProgram]:
    """Start the program with its data in ``folder``; kill it afterwards. ``reads``: its output is read.

    It is a copy of the process that has loaded it, or else ``command``. ``more`` are further arguments; ``version`` is
    that of the client, with the option that it needs.
    """
    more = more if version == 1 else (*more, "--draft-v2")
    errors = folder / "stderr.log"
    async with AsyncExitStack() as stack:
        log = stack.enter_context(errors.open("ab"))
        process = await stack.enter_async_context(
            _running(command, (*acp_arguments(folder), *more), folder, log.fileno())
        )
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        async def write(data: bytes) -> None:
            stdin.write(data)
            await stdin.drain()

        client = FrontClient(write, version=version)

        async def read() -> None:
            try:
                while line := await stdout.readline():
                    await client.receive(line)
            except AssertionError as error:
                client.fail(error)

        reading = asyncio.create_task(read(), name="output of isthmus acp") if reads else None
        try:
            yield AcpProgram(process, client, errors)
            if reading is not None and process.returncode is not None:
                await asyncio.wait_for(reading, 30)
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
