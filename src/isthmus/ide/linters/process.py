"""Runs a linter once, with a deadline and an output limit, and leaves no process behind.

The program is searched on PATH and in the folder of the Python that runs Isthmus. Does not use :mod:`isthmus.tools`,
which runs commands for agents, because the companion works without an agent.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from isthmus.errors import IsthmusError
from isthmus.runtime.processes import end_process, start_process

MAXIMUM_OUTPUT_BYTES: Final = 16 * 1024 * 1024
_MAXIMUM_ERROR_BYTES: Final = 2000


class LinterError(IsthmusError):
    """A linter that could not be run to its end, or whose output could not be decoded."""


def find_program(name: str) -> str:
    """Return the path of a program.

    Raises:
        LinterError: the program is not installed.
    """
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        raise LinterError(f"{name} is not installed: it is not on PATH. Install it with: pip install {name}")
    return found


async def run_to_end(command: Sequence[str], folder: str, seconds: float) -> bytes:
    """Run a program in ``folder``, and return its standard output for any exit status.

    Raises:
        LinterError: the program cannot be started, takes longer than ``seconds``, or prints too much or nothing.
    """
    name = Path(command[0]).name
    try:
        process = await start_process(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        )
    except OSError as error:
        raise LinterError(f"{name} cannot be started: {error.strerror}") from error
    try:
        async with asyncio.timeout(seconds):
            output, errors = await asyncio.gather(
                _read(process.stdout, MAXIMUM_OUTPUT_BYTES), _read(process.stderr, MAXIMUM_OUTPUT_BYTES)
            )
            status = await process.wait()
    except TimeoutError as error:
        raise LinterError(f"{name} was stopped after {seconds:g} s") from error
    finally:
        await end_process(process)  # with its children, such as pyright's node
    if not output.strip():
        detail = errors[:_MAXIMUM_ERROR_BYTES].decode("utf-8", "replace").strip()
        raise LinterError(f"{name} ended with {status}: {detail or 'it printed nothing'}")
    return output


async def _read(stream: asyncio.StreamReader | None, maximum: int) -> bytes:
    data = bytearray()
    while stream is not None and (piece := await stream.read(65_536)):
        data += piece
        if len(data) > maximum:
            raise LinterError(f"expected at most {maximum} bytes of output; none of it is used")
    return bytes(data)
