"""``isthmus serve`` as a process of its own, with a scripted model."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from isthmus.a2a import RemoteAgent
from support.loaded_program import ISTHMUS, LoadedProgram
from support.remote_agents import remote_agent
from support.streamed_program import StreamedProgram, streamed_program

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


@dataclass(frozen=True, slots=True)
class ServeProgram:
    """A server that has reported that it is ready."""

    process: StreamedProgram
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

    It is a copy of the process `loaded`, by default that of all tests, which runs ``program``.
    """
    (folder / "script.yaml").write_text(script, encoding="utf-8")
    token_file = folder / "token"
    options = (
        *("serve", "--port", "0", "--no-ide"),
        *("--token-file", str(token_file), "--data-dir", str(folder / "data"), "--workspace", str(workspace)),
        *("-m", f"scripted:{folder / 'script.yaml'}", *arguments),
    )
    with (folder / "serve.log").open("ab") as log:
        async with streamed_program(
            *options,
            folder=folder,
            errors=log.fileno(),
            environment={**os.environ, **(environment or {})},
            program=program,
            loaded=loaded,
            has_input=False,
        ) as process:
            try:
                line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode().rstrip("\n")
                assert line.startswith(READY), f"{line!r}; {(folder / 'serve.log').read_text(encoding='utf-8')}"
                token = token_file.read_text(encoding="utf-8").strip()
                yield ServeProgram(process, line.removeprefix(READY), token)
            finally:
                process.terminate()
                try:
                    await asyncio.wait_for(process.wait(), 30)
                except TimeoutError:
                    process.kill()
                    await process.wait()
