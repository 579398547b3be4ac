"""A process whose start is cancelled at any moment: nothing of it is left."""

import asyncio
import gc
import warnings
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable

import anyio
import psutil
import pytest

from isthmus.runtime.processes import end_process, start_process
from support.waiting import eventually

MOMENTS = 12
"""Number of turns of the event loop: more than a start takes."""


async def run(seconds: str) -> None:
    """Run a shell with a child, both with its pipes, until this is cancelled."""
    command = ("/bin/sh", "-c", f"sleep {seconds} & sleep {seconds}")
    process = await start_process(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        with anyio.CancelScope(shield=True):
            await end_process(process)


async def cancelled_by_its_task(seconds: str, turns: int) -> None:
    task = asyncio.create_task(run(seconds))
    await pass_by(turns)
    task.cancel()
    await asyncio.wait({task})


async def cancelled_by_a_scope(seconds: str, turns: int) -> None:
    """Start a process in a cancelled scope: anyio cancels repeatedly until the scope is left."""

    scope = anyio.CancelScope()

    async def cancel() -> None:
        await pass_by(turns)
        scope.cancel()

    cancelling = asyncio.create_task(cancel())
    with scope:
        await run(seconds)
    await cancelling


async def pass_by(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


@pytest.mark.slow
@pytest.mark.parametrize("cancelled", [cancelled_by_its_task, cancelled_by_a_scope])
def test_a_start_that_is_cancelled_at_any_moment_leaves_no_process_and_no_open_pipe(
    cancelled: Callable[[str, int], Awaitable[None]],
) -> None:
    seconds = f"{id(cancelled) % 1_000_003}.5"  # a unique number, by which they are found
    gc.collect()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")

        async def at_each_moment() -> None:
            for turns in range(MOMENTS):
                await cancelled(seconds, turns)

        asyncio.run(at_each_moment())
        gc.collect()
    assert not told, [str(warning.message) for warning in told]

    def is_left() -> bool:
        return any(seconds in (found.info["cmdline"] or ()) for found in psutil.process_iter(["cmdline"]))

    eventually(lambda: not is_left(), what="the processes have ended")
