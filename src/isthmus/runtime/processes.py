"""Starts processes and kills them with their group: nothing of them is left, even if the caller is cancelled.

:mod:`isthmus.tools.shell.process_group` ends processes politely, :mod:`isthmus.runtime.group_guard` guards them
against the death of this one.
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
    """Start the leader of a new process group by ``asyncio.create_subprocess_exec``, safely for cancellation.

    If asyncio's function is cancelled while the process starts, it kills the process without its children, and may
    leave its pipes open. Here the start is completed; then the group is ended, and the cancellation is raised.

    Raises:
        OSError: it cannot be started.
    """
    starting = asyncio.create_task(asyncio.create_subprocess_exec(*command, start_new_session=True, **options))
    cancelled = await _finish(starting)
    if cancelled is None:
        return starting.result()
    if not starting.cancelled() and starting.exception() is None:
        await end_process_fully(starting.result())
    raise cancelled


async def end_process_fully(process: Process) -> None:
    """End a process as :func:`end_process` does, also if the caller is cancelled meanwhile.

    Raises:
        CancelledError: the caller was cancelled; the process has ended.
    """
    if (cancelled := await _finish(asyncio.create_task(end_process(process)))) is not None:
        raise cancelled


async def _finish(task: "asyncio.Task[Any]") -> asyncio.CancelledError | None:
    """Wait until a task is done, even if cancelled repeatedly, as anyio does until its scope is left."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


async def end_process(process: Process) -> None:
    """Kill a process that :func:`start_process` started, with its group, and close its pipes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # Close the pipes first, since the wait includes their ends: a child that left the group may hold them forever.
    # asyncio has no public way to them.
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
