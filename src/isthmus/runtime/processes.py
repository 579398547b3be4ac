"""Starting a process, and ending it with its group, so that nothing of it is left whoever is cancelled meanwhile.

Deliberately not here: guards for when this process dies, and polite ends (:mod:`isthmus.tools.process_group`).
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import Process
from typing import Any, cast

END_SECONDS = 5.0
"""Maximum wait in seconds for a killed process: on a busy machine its end is reported late."""


async def start_process(*command: str, **options: Any) -> Process:
    """``asyncio.create_subprocess_exec`` for the leader of a new group, which a cancellation does not tear apart.

    Half way the process runs and nobody holds it; asyncio would kill it alone, without what it started, and may leave
    its pipes open. So it is started to the end, and then ended with its group before the cancellation is raised.

    Raises:
        OSError: it cannot be started.
    """
    starting = asyncio.create_task(asyncio.create_subprocess_exec(*command, start_new_session=True, **options))
    cancelled = await _finish(starting)
    if cancelled is None:
        return starting.result()
    if not starting.cancelled() and starting.exception() is None:
        await _finish(asyncio.create_task(end_process(starting.result())))
    raise cancelled


async def _finish(task: "asyncio.Task[Any]") -> asyncio.CancelledError | None:
    """Wait until a task is done, however often this is cancelled: anyio does so until its scope is left."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


async def end_process(process: Process) -> None:
    """Kill a process that :func:`start_process` started, and its group, and be done with its pipes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # asyncio has no public way to the pipes. Before the wait, which is one for their ends as well: what left the group
    # may hold them forever, and nobody reads from it any more.
    transport = cast(
        "asyncio.SubprocessTransport",
        process._transport,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportPrivateUsage]
    )
    try:
        for number in (0, 1, 2):
            if (pipe := transport.get_pipe_transport(number)) is not None:
                pipe.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await process.wait()
    finally:
        transport.close()
