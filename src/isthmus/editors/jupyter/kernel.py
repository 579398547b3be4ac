"""A running Jupyter kernel: runs one piece of code after the other, and returns the output of each.

It is reached through :class:`Channels`: a server's websocket (:mod:`isthmus.editors.jupyter.server_kernel`) or the
sockets of a connection file (:mod:`isthmus.editors.jupyter.connection_file`). Deliberately not here: starting,
restarting and stopping kernels, which belong to the user.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final, Protocol

from isthmus.editors.jupyter.messages import RunningExecution
from isthmus.ide.editor import CodeExecution, EditorError
from isthmus.runtime.running_tasks import RunningTasks

REPLY_SECONDS: Final = 10.0
"""Maximum wait in seconds for the reply after the kernel reported that it is idle; it sends both at once."""
INTERRUPT_SECONDS: Final = 1.0
"""Time in seconds after which code that caught an interrupt is interrupted again."""
MAXIMUM_INTERRUPTS: Final = 10
START_SECONDS: Final = 5.0
"""Time in seconds without a message after which a kernel that has not begun is asked whether it has the code."""


class Channels(Protocol):
    """An open connection to a kernel, for one execution."""

    async def execute(self, code: str) -> str:
        """Ask the kernel to run code, and return the id of the message."""
        ...

    async def ask(self) -> str:
        """Ask the kernel about itself, behind what was sent before, and return the id of the message."""
        ...

    async def receive(self) -> Mapping[str, Any]:
        """Return the next message of the shell or iopub channel.

        Raises:
            EditorError: the connection is lost, or the kernel died.
        """
        ...

    async def interrupt(self) -> None:
        """Interrupt what the kernel runs now."""
        ...


class Kernel:
    """Runs code, one execution at a time, in the order of the calls. ``connect`` opens a connection for each."""

    def __init__(
        self, connect: Callable[[], AbstractAsyncContextManager[Channels]], start_seconds: float = START_SECONDS
    ) -> None:
        self._connect = connect
        self._start_seconds = start_seconds
        self._turn = asyncio.Lock()
        self._tasks = RunningTasks()

    async def execute(self, code: str) -> CodeExecution:
        """Run code. Cancelling interrupts it and keeps the kernel's state; later calls wait until it has ended.

        Raises:
            EditorError: the kernel cannot be reached, is lost, or died.
        """
        done: asyncio.Future[CodeExecution] = asyncio.get_running_loop().create_future()
        is_wanted = asyncio.Event()
        is_wanted.set()
        self._tasks.start(self._run(code, done, is_wanted))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            # The task goes on: it interrupts the code if it has begun, and keeps the next code waiting until then.
            is_wanted.clear()
            done.cancel()
            raise

    async def aclose(self) -> None:
        """Leave the kernel at once; the code that it runs goes on."""
        await self._tasks.cancel()

    async def _run(self, code: str, done: asyncio.Future[CodeExecution], is_wanted: asyncio.Event) -> None:
        try:
            async with self._turn:
                if not is_wanted.is_set():
                    return
                async with self._connect() as channels:
                    running = RunningExecution(await channels.execute(code))
                    await self._follow(channels, running, done, is_wanted)
        except EditorError as error:
            if not done.done():
                done.set_exception(error)
        finally:
            if not done.done():
                done.set_exception(EditorError("the companion left the kernel while it ran the code"))

    async def _follow(
        self,
        channels: Channels,
        running: RunningExecution,
        done: asyncio.Future[CodeExecution],
        is_wanted: asyncio.Event,
    ) -> None:
        reading = asyncio.create_task(self._read(channels, running))
        gone = asyncio.create_task(_cancelled(done))
        try:
            await asyncio.wait({reading, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not is_wanted.is_set():
                await self._interrupt(channels, running, reading)
            elif reading.done():
                reading.result()
                done.set_result(running.result())
        finally:
            for task in (reading, gone):
                task.cancel()
            await asyncio.gather(reading, gone, return_exceptions=True)

    async def _read(self, channels: Channels, running: RunningExecution) -> None:
        while not running.is_idle:
            try:
                async with asyncio.timeout(None if running.has_started else self._start_seconds):
                    message = await channels.receive()
            except TimeoutError:
                # The kernel is busy with other code, or was restarted and has lost this.
                running.asked_after.add(await channels.ask())
                continue
            running.feed(message)
        with suppress(TimeoutError):
            async with asyncio.timeout(REPLY_SECONDS):
                while not running.is_finished:
                    running.feed(await channels.receive())

    async def _interrupt(self, channels: Channels, running: RunningExecution, reading: asyncio.Task[None]) -> None:
        """Interrupt the code, but not before it has begun: the interrupt would hit code of the user's."""
        with suppress(EditorError):
            while not running.has_started and not reading.done():
                await asyncio.wait({reading}, timeout=0.05)
            for _ in range(MAXIMUM_INTERRUPTS):
                if reading.done():
                    break
                await channels.interrupt()
                await asyncio.wait({reading}, timeout=INTERRUPT_SECONDS)


async def _cancelled(done: asyncio.Future[CodeExecution]) -> None:
    await asyncio.wait({done})
