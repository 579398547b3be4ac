"""The HTTP transport of MCP's first revision: the server sends one stream of events; requests go to another URL.

The first event contains the URL for requests. The SDK's own transport accepts no event over 1 MiB, and does not report
refused requests, so that their callers wait forever. Not here: permitted addresses and headers, see
:mod:`isthmus.mcp_host.transports.endpoints`.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2
from anyio.abc import AsyncResource
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared._httpx_utils import request_within_origin, sse_within_origin  # pyright: ignore[reportPrivateUsage] - the SDK's rule for redirects
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCRequest
from typing_extensions import override

from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.mcp_host.diagnosis.unreachable import connection_problem
from isthmus.mcp_host.transports.messages import MAXIMUM_MESSAGE_BYTES, message_of
from isthmus.mcp_host.transports.session_refusals import REFUSED, STATUSES, error_of, unsent_error

LOST_REQUEST = "SSE stream failed: "
"""Beginning of the error of a request that could not be sent, as in the SDK."""


class SseError(httpx2.StreamError):
    """A stream of events does not follow MCP."""


@contextlib.asynccontextmanager
async def sse_streams(
    url: str, client: httpx2.AsyncClient, log: ServerLog
) -> AsyncGenerator["tuple[MemoryObjectReceiveStream[SessionMessage], SseOutgoing]"]:
    """Connect to the server with its stream of events at `url`, and yield its streams; the client is closed with them.

    Raises:
        httpx2.HTTPError: the server cannot be reached, or refuses.
        SseError: the server does not send the URL for requests, or it is at another origin.
    """
    async with client, sse_within_origin(client, url, max_event_size=MAXIMUM_MESSAGE_BYTES) as source:
        source.response.raise_for_status()
        place: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        send, receive = anyio.create_memory_object_stream[SessionMessage](16)
        with send, receive:
            reading = asyncio.create_task(_read(source, url, place, send, log))
            try:
                yield receive, SseOutgoing(client, await place, send)
            finally:
                reading.cancel()
                await asyncio.wait({reading})


async def _read(
    source: httpx2.EventSource,
    url: str,
    place: "asyncio.Future[str]",
    send: MemoryObjectSendStream[SessionMessage],
    log: ServerLog,
) -> None:
    """Pass messages on until the stream of events ends, then end the stream of messages."""
    ended = SseError("the stream of events ended before it gave the URL for requests")
    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with send:
            try:
                async for event in source:
                    if event.event == "endpoint" and not place.done():
                        place.set_result(_same_origin(url, event.data))
                    elif event.event == "message" and event.data:
                        message = message_of(event.data.encode("utf-8", "replace"), log)
                        if message is not None:
                            await send.send(message)
            except (httpx2.HTTPError, httpx2.StreamError, httpx2.SSEError, ValueError) as error:
                ended = error
                log.add(str(error).encode("utf-8", "replace"))
            finally:
                if not place.done():
                    place.set_exception(ended)


def _same_origin(url: str, given: str) -> str:
    """Return the URL for requests.

    Raises:
        SseError: it is at another origin, which must not get the headers configured for this one.
    """
    found = urljoin(url, given)
    if (urlsplit(found).scheme, urlsplit(found).netloc) != (urlsplit(url).scheme, urlsplit(url).netloc):
        raise SseError("its URL for requests is at another origin, which is not allowed")
    return found


class SseOutgoing(AsyncResource):
    """The messages to the server. A refused request is answered with an error."""

    def __init__(self, client: httpx2.AsyncClient, place: str, answers: MemoryObjectSendStream[SessionMessage]) -> None:
        self._client = client
        self._place = place
        self._answers = answers

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message; return when the server has accepted or refused it."""
        content = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        try:
            response = await request_within_origin(self._client, "POST", self._place, json=content)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            await self._refuse(item, unsent_error(connection_problem(error)))
            return
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            reason = f"{LOST_REQUEST}{str(error) or type(error).__name__}"
            await self._refuse(item, ErrorData(code=CONNECTION_CLOSED, message=reason))
            return
        if response.status_code in STATUSES and isinstance(item.message, JSONRPCRequest):
            await self._refuse(item, error_of(response.status_code, response.content, item.message.id))
        elif response.status_code >= 300:
            await self._refuse(item, ErrorData(code=INTERNAL_ERROR, message=REFUSED))

    async def _refuse(self, item: SessionMessage, error: ErrorData) -> None:
        if isinstance(item.message, JSONRPCRequest):
            answer = JSONRPCError(jsonrpc="2.0", id=item.message.id, error=error)
            with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await self._answers.send(SessionMessage(answer))

    @override
    async def aclose(self) -> None:
        """Do nothing: the connection ends with the streams."""
