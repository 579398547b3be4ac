"""Kernel without a server, as of ``jupyter console`` or Spyder, reached by its connection file (``kernel-*.json``).

It needs jupyter-client (the extra ``jupyter``), which is imported when the first code runs.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from queue import Empty
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from isthmus.editors.jupyter.kernel import Channels, Kernel
from isthmus.editors.jupyter.messages import execute_request
from isthmus.ide.editor import EditorError

if TYPE_CHECKING:
    from jupyter_client.asynchronous.client import AsyncKernelClient
    from jupyter_client.channels import HBChannel

READY_SECONDS: Final = 30.0
"""Maximum time in seconds until the kernel answers, and until its heartbeat begins."""
LISTEN_SECONDS: Final = 0.5
SILENT_BEATS: Final = 10
"""Number of checks, LISTEN_SECONDS apart, without a heartbeat after which the kernel counts as dead."""


def require_jupyter_client() -> None:
    """Raise EditorError if jupyter-client, which kernels without a server need, is not installed."""
    try:
        import jupyter_client.asynchronous  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise EditorError(
            "a kernel without a Jupyter server needs jupyter-client, which is not installed; install isthmus[jupyter]"
        ) from error


def connection_file_kernel(path: str) -> Kernel:
    """Return the kernel with the connection file ``path``."""

    def connect() -> AbstractAsyncContextManager[Channels]:
        return _connected(path)

    return Kernel(connect)


@asynccontextmanager
async def _connected(path: str) -> AsyncGenerator["_ZmqChannels"]:
    require_jupyter_client()
    from jupyter_client.asynchronous.client import AsyncKernelClient

    client = AsyncKernelClient(connection_file=path)
    try:
        client.load_connection_file()
    except (OSError, ValueError, KeyError) as error:
        raise EditorError(f"{path}: expected the connection file of a kernel that runs: {error}") from error
    client.start_channels(stdin=False, hb=False)
    channels = _ZmqChannels(client)
    try:
        await channels.listen()
        yield channels
    finally:
        client.stop_channels()


class _ZmqChannels(Channels):
    def __init__(self, client: "AsyncKernelClient") -> None:
        self._client = client
        self._silent = 0
        self._has_heartbeat = False
        """Whether the thread that listens to the kernel's heartbeat was started."""

    async def listen(self) -> None:
        """Wait until messages of the kernel arrive: those that it sends before are lost."""
        control = self._client.control_channel
        try:
            async with asyncio.timeout(READY_SECONDS):
                while True:
                    # The control channel is answered also while a cell runs.
                    control.send(self._client.session.msg("kernel_info_request"))
                    try:
                        await self._client.get_iopub_msg(timeout=LISTEN_SECONDS)
                        return
                    except Empty:
                        continue
        except TimeoutError as error:
            raise EditorError(
                f"the kernel does not answer ({READY_SECONDS:.0f} s); expected one that runs: see whether its process "
                "is there, and name its newest connection file with --address"
            ) from error

    @override
    async def execute(self, code: str) -> str:
        request = execute_request(code, self._client.session.session)
        message = self._client.session.msg("execute_request", dict(request["content"]))
        self._client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    @override
    async def ask(self) -> str:
        message = self._client.session.msg("kernel_info_request")
        self._client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    @override
    async def receive(self) -> Mapping[str, Any]:
        while True:
            for channel in (self._client.iopub_channel, self._client.shell_channel):
                try:
                    return dict(await channel.get_msg(timeout=0))
                except Empty:
                    pass
            await self._wait()

    async def _wait(self) -> None:
        """Wait until there is a message, at most for LISTEN_SECONDS.

        Raises:
            EditorError: the kernel has had no heartbeat for too long.
        """
        import zmq
        import zmq.asyncio

        poller = zmq.asyncio.Poller()
        for channel in (self._client.iopub_channel, self._client.shell_channel):
            poller.register(channel.socket, zmq.POLLIN)
        if await poller.poll(int(LISTEN_SECONDS * 1000)):
            return
        if not self._has_heartbeat:
            await self._begin_heartbeat()  # as late as this: code that ends soon needs no thread
        self._silent = 0 if self._client.hb_channel.is_beating() else self._silent + 1
        if self._silent >= SILENT_BEATS:
            raise EditorError("the kernel died or was restarted; its variables are lost")

    async def _begin_heartbeat(self) -> None:
        """Start the thread that listens to the heartbeat; wait until it can be stopped, even when cancelled.

        jupyter-client's thread does not notice a stop before it has begun: it opens sockets until none are left, and
        ends with a traceback.
        """
        self._has_heartbeat = True
        heartbeat = self._client.hb_channel
        heartbeat.start()
        begun = asyncio.create_task(_begun(heartbeat))
        try:
            await asyncio.shield(begun)
        finally:
            await begun

    @override
    async def interrupt(self) -> None:
        self._client.control_channel.send(self._client.session.msg("interrupt_request", {}))


async def _begun(heartbeat: "HBChannel") -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(READY_SECONDS):
            while heartbeat.is_alive() and not heartbeat.is_beating():
                await asyncio.sleep(0.001)
