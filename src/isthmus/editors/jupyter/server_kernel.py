"""Kernel of a Jupyter server, over the server's websocket, which the notebook in the browser uses too.

Its messages are JSON texts, so that ZeroMQ is not needed. Binary frames, which carry the buffers of widgets, are
ignored.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from typing_extensions import override

from isthmus.editors.jupyter.kernel import Channels, Kernel
from isthmus.editors.jupyter.messages import execute_request, info_request
from isthmus.editors.jupyter.server import JupyterServer
from isthmus.encoding.codec import JsonObject
from isthmus.ide.editor import EditorError
from isthmus.listeners.logs import quiet_log

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

OPEN_SECONDS: Final = 30.0
"""Maximum time in seconds to connect: the server first waits for the kernel, which may just be starting."""
MAXIMUM_MESSAGE_BYTES: Final = 128 * 1024 * 1024


def server_kernel(server: JupyterServer, kernel_id: str) -> Kernel:
    """Return the kernel of a session."""

    def connect() -> AbstractAsyncContextManager[Channels]:
        return _connected(server, kernel_id)

    return Kernel(connect)


@asynccontextmanager
async def _connected(server: JupyterServer, kernel_id: str) -> AsyncGenerator["_ServerChannels"]:
    from websockets.asyncio.client import connect
    from websockets.exceptions import WebSocketException

    session = uuid4().hex
    token = server.address.token
    try:
        socket = await connect(
            server.websocket_url(kernel_id, session),
            additional_headers={"authorization": f"token {token}"} if token else {},
            open_timeout=OPEN_SECONDS,
            max_size=MAXIMUM_MESSAGE_BYTES,
            compression=None,  # both ends are on one machine
            proxy=None,
            logger=quiet_log(),
        )
    except (OSError, TimeoutError, WebSocketException) as error:
        raise EditorError(
            f"the kernel cannot be reached: {str(error) or f'no answer within {OPEN_SECONDS:.0f} s'}; see in Jupyter "
            "whether it runs"
        ) from error
    try:
        yield _ServerChannels(server, kernel_id, socket, session)
    finally:
        await socket.close()


class _ServerChannels(Channels):
    def __init__(self, server: JupyterServer, kernel_id: str, socket: "ClientConnection", session: str) -> None:
        self._server = server
        self._kernel_id = kernel_id
        self._socket = socket
        self._session = session

    @override
    async def execute(self, code: str) -> str:
        return await self._send(execute_request(code, self._session))

    @override
    async def ask(self) -> str:
        return await self._send(info_request(self._session))

    async def _send(self, request: JsonObject) -> str:
        from websockets.exceptions import ConnectionClosed

        try:
            await self._socket.send(json.dumps(request))
        except ConnectionClosed as error:
            raise _lost(error) from error
        return str(request["header"]["msg_id"])

    @override
    async def receive(self) -> Mapping[str, Any]:
        from websockets.exceptions import ConnectionClosed

        while True:
            try:
                frame = await self._socket.recv()
            except ConnectionClosed as error:
                raise _lost(error) from error
            if isinstance(frame, bytes):
                continue
            try:
                message: object = json.loads(frame)
            except ValueError as error:
                raise EditorError(f"expected JSON from the Jupyter server, received something else: {error}") from error
            if isinstance(message, dict):
                return cast("dict[str, Any]", message)

    @override
    async def interrupt(self) -> None:
        await self._server.interrupt(self._kernel_id)


def _lost(error: Exception) -> EditorError:
    return EditorError(f"the connection to the kernel was lost while it ran the code ({error}); it may still run it")
