"""``isthmus serve`` as a process of its own, with a scripted model."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from isthmus.a2a import RemoteAgent
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


@dataclass(frozen=True, slots=True)
class ServeProgram:
    """A server that has reported that it is ready."""

    process: asyncio.subprocess.Process
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
) -> AsyncGenerator[ServeProgram]:
    """Start the server with its script, data and token in ``folder``; end it afterwards in any case."""
    (folder / "script.yaml").write_text(script, encoding="utf-8")
    token_file = folder / "token"
    command = [
        *(sys.executable, "-m", "isthmus", "serve", "--port", "0", "--no-ide"),
        *("--token-file", str(token_file), "--data-dir", str(folder / "data"), "--workspace", str(workspace)),
        *("-m", f"scripted:{folder / 'script.yaml'}", *arguments),
    ]
    with (folder / "serve.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            cwd=folder,
            env={**os.environ, **(environment or {})},
        )
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode().rstrip("\n")
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
