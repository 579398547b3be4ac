"""The processes of the demonstration: always ended with their groups, and quoted in errors."""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from isthmus.errors import IsthmusError
from isthmus.runtime.processes import end_process, start_process

START_SECONDS = 20.0
STOP_SECONDS = 5.0
LAST_LINES = 20
"""Number of lines of a process's error output that an error quotes."""
MAXIMUM_LINE_BYTES = 1024 * 1024


@asynccontextmanager
async def running(
    name: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    *,
    ready: str | None = None,
    takes_line: Callable[[str], bool] = lambda _: False,
) -> AsyncGenerator[str]:
    """Run a process as long as the block runs; with ``ready``, yield the first line of stdout that contains it.

    ``takes_line`` gets each line of stderr; errors quote only those for which it returns False.

    Raises:
        IsthmusError: the process ended, or did not print a line that fits within :data:`START_SECONDS`.
    """
    process = await start_process(
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        cwd=folder,
        limit=MAXIMUM_LINE_BYTES,
    )
    output, errors = cast("asyncio.StreamReader", process.stdout), cast("asyncio.StreamReader", process.stderr)
    last_lines: deque[str] = deque(maxlen=LAST_LINES)
    readers: list[asyncio.Task[object]] = [asyncio.create_task(_read_errors(errors, takes_line, last_lines))]
    try:
        line = "" if ready is None else await _line_with(ready, output)
        if line is None:
            quoted = "\n".join(last_lines) or "it printed nothing on stderr"
            raise IsthmusError(f"{name} did not start: {quoted}")
        readers.append(asyncio.create_task(output.read()))  # a full pipe would stop the process
        yield line
    finally:
        with contextlib.suppress(ProcessLookupError, TimeoutError):
            os.killpg(process.pid, signal.SIGTERM)
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        await end_process(process)


async def run_to_end(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, text: str = "") -> str:
    """Run a command with ``text`` as its input, and return its output.

    Raises:
        IsthmusError: it failed; the text quotes its error output.
    """
    process = await asyncio.create_subprocess_exec(
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        cwd=folder,
    )
    output, errors = await process.communicate(text.encode())
    if process.returncode != 0:
        quoted = errors.decode("utf-8", "replace").strip()
        raise IsthmusError(f"`{' '.join(arguments)}` ended with status {process.returncode}: {quoted}")
    return output.decode("utf-8", "replace")


async def _line_with(ready: str, output: asyncio.StreamReader) -> str | None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(START_SECONDS):
            while raw := await output.readline():
                if ready in (line := raw.decode("utf-8", "replace").strip()):
                    return line
    return None


async def _read_errors(
    errors: asyncio.StreamReader, takes_line: Callable[[str], bool], last_lines: "deque[str]"
) -> None:
    while raw := await errors.readline():
        line = raw.decode("utf-8", "replace").rstrip()
        if not takes_line(line):
            last_lines.append(line)
