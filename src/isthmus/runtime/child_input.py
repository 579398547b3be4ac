"""Input for a child process that may end before it has read everything."""

import asyncio
import contextlib


async def feed(writer: asyncio.StreamWriter | None, data: bytes) -> None:
    """Write the whole input of a process and close it. Nothing is raised if the process does not read it.

    Waits while the pipe is full. With None, for a process without a pipe, nothing happens.
    """
    if writer is None:
        return
    try:
        with contextlib.suppress(OSError):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
    with contextlib.suppress(OSError):  # before Python 3.11.4 asyncio logs an error that nobody has taken
        await writer.wait_closed()
