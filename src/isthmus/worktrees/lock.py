"""Locks between processes that a task waits for without a thread."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from isthmus.files.atomic import exclusive
from isthmus.worktrees.errors import WorktreeError

POLL_SECONDS = 0.05


@asynccontextmanager
async def held(path: Path, seconds: float) -> AsyncGenerator[int]:
    """Hold a lock file, or an existing folder, and yield the lock's descriptor.

    Raises:
        WorktreeError: another process had the lock for ``seconds``.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    with ExitStack() as stack:
        while True:
            try:
                descriptor = stack.enter_context(exclusive(path, 0))
                break
            except TimeoutError as error:
                if loop.time() >= deadline:
                    raise WorktreeError(f"another process has used {path} for {seconds:g} s; try again") from error
            await asyncio.sleep(POLL_SECONDS)
        yield descriptor
