"""HTTP/1.1 event streams that end with the connection instead of a last chunk, as agent CLIs need them.

When a server is killed, its connection is closed like any other, so a client's stream has simply ended, and the client
opens it again. A chunked stream that is cut off is an error, after which Gemini CLI and Qwen Code do not reconnect.
uvicorn chunks every body of unknown length, whatever its headers say; h11 does not for a client of HTTP/1.0.
"""

import asyncio
from typing import Any

import h11
from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from isthmus.listeners.http_protocol import HttpProtocol

EVENT_STREAM = b"text/event-stream"
"""Media type of the answers that end with their connection."""


class CloseDelimitedConnection(h11.Connection):
    """Server side of a connection that sends event streams without chunks, and closes after one."""

    @override
    def send(self, event: Any) -> Any:
        if isinstance(event, h11.Response) and _is_event_stream(event):
            self.their_http_version = b"1.0"  # for this request; h11 sets it for each request
        return super().send(event)


class CloseDelimitedProtocol(HttpProtocol, H11Protocol):
    """uvicorn's h11 protocol on a :class:`CloseDelimitedConnection`, also if httptools is installed."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = CloseDelimitedConnection(h11.SERVER)


def _is_event_stream(response: h11.Response) -> bool:
    return any(name == b"content-type" and value.startswith(EVENT_STREAM) for name, value in response.headers)
