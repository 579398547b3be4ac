"""The processes of the demonstration: started in their own groups, always ended, their last words kept for errors."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from isthmus.errors import IsthmusError

START_SECONDS = 20.0
STOP_SECONDS = 5.0
LAST_WORDS = 2000


@asynccontextmanager
async def running(
    name: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, *, ready: str | None = None
) -> AsyncGenerator[str]:
    """Run a process as long as the block runs. With ``ready``, yield the first line of stdout that contains it.

    Raises:
        IsthmusError: it ended, or printed no such line within :data:`START_SECONDS`; the text quotes its last lines.
    """
    process = await asyncio.create_subprocess_exec(
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        cwd=folder,
        start_new_session=True,
    )
    output, errors = cast("asyncio.StreamReader", process.stdout), cast("asyncio.StreamReader", process.stderr)
    words = bytearray()
    listening = asyncio.create_task(_keep(errors, words))
    try:
        line = "" if ready is None else await _line_with(name, output, ready, words)
        listening_too = asyncio.create_task(_keep(output, bytearray()))
        try:
            yield line
        finally:
            listening_too.cancel()
    finally:
        await _stop(process)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def run_to_end(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, text: str = "") -> str:
    """Run a command to its end and return its output.

    Raises:
        IsthmusError: it failed; with its last words.
    """
    process = await asyncio.create_subprocess_exec(
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        cwd=folder,
    )
    output, words = await process.communicate(text.encode())
    if process.returncode != 0:
        said = words.decode("utf-8", "replace").strip()
        raise IsthmusError(f"`{' '.join(arguments)}` ended with status {process.returncode}: {said}")
    return output.decode("utf-8", "replace")


async def _line_with(name: str, stream: asyncio.StreamReader, ready: str, words: bytearray) -> str:
    try:
        async with asyncio.timeout(START_SECONDS):
            while raw := await stream.readline():
                if ready in (line := raw.decode("utf-8", "replace").strip()):
                    return line
    except TimeoutError:
        pass
    said = words[-LAST_WORDS:].decode("utf-8", "replace").strip() or "it said nothing"
    raise IsthmusError(f"{name} did not start: {said}")


async def _keep(stream: asyncio.StreamReader, words: bytearray) -> None:
    while data := await stream.read(65536):
        words += data
        del words[:-LAST_WORDS]


async def _stop(process: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
