"""HTTP server of the review page, on the loopback interface. The page itself has no sockets."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from isthmus.editors.review_page.page import MAXIMUM_FORM_BYTES, PageRequest, PageResponse, ReviewPage
from isthmus.editors.review_page.pending_reviews import PendingReviews
from isthmus.ide.editor import EditorError
from isthmus.listeners.connection_slot import token_shown
from isthmus.network import loopback

if TYPE_CHECKING:
    import socket

    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from isthmus.listeners.http_server import HttpServer

BODY_SECONDS: Final = 30.0
"""Maximum time in seconds in which the body of a request has to come."""


class ReviewPageServer:
    """Serves the review page between :meth:`start` and :meth:`stop`."""

    def __init__(self, reviews: PendingReviews, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reviews = reviews
        self._page: ReviewPage | None = None
        self._server: HttpServer | None = None
        self._listener: socket.socket | None = None
        self._serving: asyncio.Task[None] | None = None

    def link(self) -> str:
        """Return a new link to the page, as :meth:`ReviewPage.link` does.

        Raises:
            EditorError: the page is not served.
        """
        if self._page is None:
            raise EditorError("the review page is not served any more; start the companion again")
        return self._page.link()

    async def start(self) -> None:
        """Listen on a free port.

        Raises:
            EditorError: no port can be listened on.
        """
        from isthmus.ide.options import HttpServerLimits
        from isthmus.listeners.close_delimited import CloseDelimitedProtocol
        from isthmus.listeners.http_server import HttpServer

        try:
            self._listener = loopback.bind(0)
        except OSError as error:
            raise EditorError(f"the review page cannot be served: {error}") from error
        self._page = ReviewPage(self._reviews, int(self._listener.getsockname()[1]), self._clock)
        self._server = HttpServer(
            self, self._listener, name="the review page", protocol=CloseDelimitedProtocol, limits=HttpServerLimits()
        )
        self._serving = asyncio.create_task(self._server.run_until_stopped())
        await self._server.listening.wait()

    async def stop(self) -> None:
        """Stop listening."""
        self._page = None
        if self._server is not None and self._serving is not None:
            self._server.stop()
            await asyncio.gather(self._serving, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()

    def close_streams(self) -> None:
        """Do nothing: every answer ends by itself."""

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request of ASGI."""
        if scope["type"] != "http":
            return
        from starlette.requests import ClientDisconnect, Request

        request = Request(scope, receive)
        head = PageRequest(request.method, request.url.path, dict(request.headers))
        refusal = self._page.refusal(head) if self._page is not None else None
        if refusal is not None:  # the body of a refused request is not read
            await _response(refusal)(scope, receive, send)
            return
        if self._page is not None and self._page.has_token(head):
            token_shown(scope)
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > MAXIMUM_FORM_BYTES:
                        break
        except (TimeoutError, ClientDisconnect):
            return
        answer = await self._answer(replace(head, body=bytes(body)))
        await _response(answer)(scope, receive, send)

    async def _answer(self, request: PageRequest) -> PageResponse:
        if len(request.body) > MAXIMUM_FORM_BYTES:
            return PageResponse(413, f"Expected at most {MAXIMUM_FORM_BYTES} bytes.", {"content-type": "text/plain"})
        if self._page is None:
            return PageResponse(503, "The companion ends.", {"content-type": "text/plain"})
        return await self._page.answer(request)


def _response(answer: PageResponse) -> "Response":
    from starlette.responses import Response

    body = answer.body.encode("utf-8", "replace")  # names of files may hold bytes that are not UTF-8
    return Response(body, answer.status, dict(answer.headers))
