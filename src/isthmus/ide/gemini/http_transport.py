"""Streamable HTTP for the companion: a thin layer over the gate, the sessions and the MCP peer.

:mod:`http_gate`, :mod:`session`, :mod:`tools` and :mod:`isthmus.ide.mcp.mcp_peer` decide; this module only moves bytes,
with starlette's responses. Its StreamingResponse detects clients that disconnect.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, assert_never

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from isthmus.encoding.event_stream import KEEP_ALIVE, event_frame, retry_after
from isthmus.encoding.json_text import encode_ascii
from isthmus.ide.companion import Companion
from isthmus.ide.editor import EditorError
from isthmus.ide.gemini.http_gate import MAXIMUM_BODY_BYTES, Head, HttpGate, HttpRefusal
from isthmus.ide.gemini.session import GeminiSession, SessionTable
from isthmus.ide.gemini.tools import call_tool
from isthmus.ide.gemini.waiting import Proposal
from isthmus.ide.mcp import mcp_peer
from isthmus.ide.mcp.tool_names import CLOSE_DIFF, OPEN_DIFF
from isthmus.listeners.connection_slot import token_shown
from isthmus.rpc.messages import INVALID_PARAMS, SERVER_ERROR, Notification, RequestId, error_response

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

BODY_SECONDS = 30.0
RETRY_MILLISECONDS = 5_000
"""Delay in ms before a client reopens a stream that ended (the `retry` field of server-sent events).

Real CLIs give up after the first failed attempt, so this is the time in which a killed companion must be restarted.
"""


class McpEndpoint:
    """ASGI application. ``sessions_changed`` is called when a client connects, leaves, calls, or is sent an event."""

    def __init__(
        self,
        companion: Companion,
        sessions: SessionTable,
        gate: HttpGate,
        sessions_changed: Callable[[], None],
        keep_alive_seconds: float,
    ) -> None:
        self._companion = companion
        self._sessions = sessions
        self._gate = gate
        self._sessions_changed = sessions_changed
        self._keep_alive_seconds = keep_alive_seconds
        self._calls: dict[tuple[str, RequestId], asyncio.Task[mcp_peer.CallToolResult]] = {}
        self._showing: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._closing = False

    def close_streams(self) -> None:
        """End every stream after its queued events have been sent."""
        self._closing = True
        for session in self._sessions.all():
            session.wake.set()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        head = self._gate.check(scope["method"], scope["path"], scope["headers"])
        if isinstance(head, HttpRefusal):
            response = _json(head.status, encode_ascii(head.body), dict(head.headers))
        else:
            token_shown(scope)
            try:
                response = await self._answer(head, Request(scope, receive))
            except asyncio.CancelledError:
                if not self._closing:
                    raise
                response = _error(503, "Service Unavailable: the companion ends, and the request was not complete")
        await response(scope, receive, send)

    async def _answer(self, head: Head, request: Request) -> Response:
        version = head.protocol_version
        if version is not None and version not in mcp_peer.PROTOCOL_VERSIONS:
            supported = ", ".join(mcp_peer.PROTOCOL_VERSIONS)
            return _error(400, f"Bad Request: unsupported mcp-protocol-version {version[:50]!r}; expected {supported}")
        if head.method == "POST":
            return await self._post(head, request)
        session = self._sessions.get(head.session_id)
        if session is None:
            return _no_session(head)
        if head.method == "GET":
            if head.accept is not None and not _accepts(head.accept, "text/event-stream"):
                return _error(406, "Not Acceptable: a GET opens an event stream; expected accept: text/event-stream")
            self._companion.attach(session)
            session.queue_former_decisions(head.last_event_id)
            for proposal in session.unsettled.proposals.values():
                self._show_again(session, proposal)
            headers = {"cache-control": "no-cache, no-transform", "mcp-session-id": session.id}
            stream = self._stream(session, head.last_event_id)
            return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
        self._sessions.remove(session.id)
        session.stream = None
        session.wake.set()
        await self._companion.detach(session.id)
        self._sessions_changed()
        return Response(status_code=200)

    async def _post(self, head: Head, request: Request) -> Response:
        if head.content_type is None or head.content_type.split(";")[0].strip().lower() != "application/json":
            return _error(415, "Unsupported Media Type: expected content-type: application/json")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _read(head, request)
        except TimeoutError:
            return _error(408, f"Request Timeout: the body was not complete after {BODY_SECONDS:.0f} s")
        if body is None:
            return _error(413, f"Payload Too Large: expected at most {MAXIMUM_BODY_BYTES} bytes")
        session = self._sessions.get(head.session_id)
        if session is None:
            return await self._answer_without_session(head, body)
        return await self._handle(session, body)

    async def _answer_without_session(self, head: Head, body: bytes) -> Response:
        """Answer a message without a session: only initialize creates one."""
        candidate = GeminiSession("", "", 0)
        match candidate.peer.receive(body):
            case mcp_peer.Reply(message, malformed=True):
                return _json(400, encode_ascii(message))
            case mcp_peer.Reply(message) if message.get("error", {}).get("code") == INVALID_PARAMS:
                return _json(200, encode_ascii(message))
            case _ if candidate.peer.client is None or head.session_id is not None:
                return _no_session(head)
            case _:
                session = await self._create()
        if session is None:
            return _error(503, "Service Unavailable: too many sessions; end one with DELETE or try again later")
        response = await self._handle(session, body)
        response.headers["mcp-session-id"] = session.id
        self._sessions_changed()
        return response

    async def _create(self) -> GeminiSession | None:
        if (old := self._sessions.session_to_end()) is not None:
            self._sessions.remove(old.id)
            await self._companion.detach(old.id)
        return self._sessions.create()

    async def _handle(self, session: GeminiSession, body: bytes) -> Response:
        self._companion.wire.received(session.title, body)
        response = await self._respond(session, body)
        self._companion.wire.sent(session.title, bytes(response.body) or b"%d" % response.status_code)
        return response

    async def _respond(self, session: GeminiSession, body: bytes) -> Response:
        received = session.peer.receive(body)
        match received:
            case mcp_peer.Reply(message, malformed):
                return _json(400 if malformed else 200, encode_ascii(message))
            case mcp_peer.CallTool(request_id):
                self._companion.attach(session)
                if received.name in (OPEN_DIFF, CLOSE_DIFF):  # answered in the agent's terminal, or asked anew
                    await self._forget(session, str(received.arguments.get("filePath")))
                key = (session.id, request_id)
                task = self._calls[key] = asyncio.create_task(
                    call_tool(self._companion, session, session.client_name, received)
                )
                try:
                    result = await asyncio.shield(task)
                except asyncio.CancelledError:
                    if not task.cancelled():
                        raise
                    result = mcp_peer.CallToolResult()
                finally:
                    self._calls.pop(key, None)
                    self._sessions_changed()
                message = session.peer.finish(request_id, result)
                return Response(status_code=202) if message is None else _json(200, encode_ascii(message))
            case mcp_peer.CancelCall(request_id):
                if (running := self._calls.get((session.id, request_id))) is not None:
                    running.cancel()
                return Response(status_code=202)
            case Notification() | mcp_peer.Ignored():
                return Response(status_code=202)
            case _:
                assert_never(received)

    async def _forget(self, session: GeminiSession, file_path: str) -> None:
        """Forget what is left of a file from the previous run, also a proposal that is about to be shown."""
        session.unsettled.forget(file_path)
        if (showing := self._showing.get((session.id, file_path))) is not None:
            showing.cancel()
            await asyncio.wait([showing])

    def _show_again(self, session: GeminiSession, proposal: Proposal) -> None:
        """Show a proposal left from the previous run; it is kept for the next run until it is visible."""

        async def show() -> None:
            with contextlib.suppress(EditorError):
                await self._companion.open_diff(session, proposal.file_path, proposal.text)
            if session.unsettled.proposals.get(proposal.file_path) is proposal:
                del session.unsettled.proposals[proposal.file_path]
            self._sessions_changed()

        key = (session.id, proposal.file_path)
        if key not in self._showing:
            task = self._showing[key] = asyncio.create_task(show())
            task.add_done_callback(lambda _: self._showing.pop(key))

    async def _stream(self, session: GeminiSession, last_event_id: str | None) -> AsyncGenerator[bytes, None]:
        log = session.log
        key = self._sessions.attach_stream(session)
        try:
            position = log.position(last_event_id)
            session.send_context(await self._companion.context())
            # Before the client receives an event of this run: an id of the previous run tells this run which decisions
            # the client has received, but would not tell the next run.
            self._sessions_changed()
            yield retry_after(RETRY_MILLISECONDS)
            while True:
                session.wake.clear()
                events, must_arrive = log.after(position), log.has_unsent
                if must_arrive:
                    # First, so that the next run resends undelivered decisions instead of asking the user again.
                    self._sessions_changed()
                for position, data in events:
                    self._companion.wire.sent(session.title, data)
                    yield event_frame(data, log.event_id(position), "message")
                    log.sent = max(log.sent, position)
                if must_arrive:
                    self._sessions_changed()
                if self._closing or session.stream is not key:
                    return
                try:
                    async with asyncio.timeout(self._keep_alive_seconds):
                        await session.wake.wait()
                except TimeoutError:
                    yield KEEP_ALIVE
        finally:
            self._sessions.detach_stream(session, key)


async def _read(head: Head, request: Request) -> bytes | None:
    """Return the body, or None if it is too large."""
    if head.content_length is not None and head.content_length > MAXIMUM_BODY_BYTES:
        return None
    chunks: list[bytes] = []
    size = 0
    with contextlib.suppress(ClientDisconnect):
        async for chunk in request.stream():
            size += len(chunk)
            if size > MAXIMUM_BODY_BYTES:
                return None
            chunks.append(chunk)
    return b"".join(chunks)


def _accepts(accept: str, media_type: str) -> bool:
    offered = {item.split(";")[0].strip().lower() for item in accept.split(",")}
    return not offered.isdisjoint({media_type, media_type.split("/")[0] + "/*", "*/*"})


def _no_session(head: Head) -> Response:
    if head.session_id is None:
        return _error(400, "Bad Request: No valid session ID provided for non-initialize request.")
    return _error(404, "Session not found: it is unknown or was ended; send initialize to begin a new one")


def _error(status: int, text: str) -> Response:
    return _json(status, encode_ascii(error_response(None, SERVER_ERROR, text)))


def _json(status: int, body: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, "application/json")
