"""The workbench in the process of a companion: the page, its devices and the reviews, without A2A.

Devices are kept in memory and end with the companion. Links come from its owner's commands alone, never to agents. No
sockets; :mod:`isthmus.programs.companion.page` has them.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from isthmus.a2a.server.http.http_request import HttpRequest
from isthmus.a2a.server.users.auth import Principal, Refusal, RequestGate
from isthmus.a2a.server.users.users import UserTable
from isthmus.web.companions.reviews import Companions, ReviewsApi
from isthmus.web.http.bundle import ROOT, Bundle, read_bundle
from isthmus.web.http.refusals import RefusalCode, refusal, refused
from isthmus.web.pages import WorkbenchPages
from isthmus.web.pairing.pairing import PairingCodes

T = TypeVar("T")

BODY_SECONDS: Final = 30.0
"""Maximum time in seconds in which the body of a request has to come."""


class DevicesInMemory:
    """Devices that end with the process."""

    def __init__(self) -> None:
        self._table = UserTable()

    def table(self) -> UserTable:
        """Return the current devices."""
        return self._table

    def change(self, change: Callable[[UserTable], tuple[UserTable, T]]) -> T:
        """Replace the table by the one that ``change`` returns; return the other value of ``change``.

        Raises:
            UsersError: of ``change``; nothing was changed.
        """
        self._table, result = change(self._table)
        return result


class CompanionSite:
    """ASGI application of a companion's workbench at ``url``, which ends without a slash. ``read`` reads the files."""

    def __init__(
        self,
        companions: Companions,
        url: str,
        clock: Callable[[], float] = time.monotonic,
        read: Callable[[], Bundle] = read_bundle,
    ) -> None:
        self._url = url
        self._read = read
        self._clock = clock
        self._codes = PairingCodes()
        self._devices = DevicesInMemory()
        self._gate = RequestGate(secrets.token_urlsafe(32))  # nobody gets the owner's token: there are only devices
        self._reviews = ReviewsApi(companions)
        self._pages: WorkbenchPages | None = None
        self._reading = asyncio.Lock()

    def link(self) -> str:
        """Return a new link that lets one browser in."""
        return f"{self._url}{ROOT}#code={self._codes.for_link('', self._clock()).text}"

    def close_streams(self) -> None:
        """End the streams of changes because the companion ends."""
        if self._pages is not None:
            self._pages.close_streams()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of ASGI."""
        if scope["type"] != "http":
            return
        request = HttpRequest(scope, receive)
        try:
            response = await self._respond(request)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _respond(self, request: HttpRequest) -> Response:
        headers = request.headers
        problem = self._gate.refuse_origin(headers.get("host"), headers.get("origin"))
        if problem is not None:
            return refused(problem)
        pages = await self._ready_pages()
        if not pages.serves(request.scope["path"], request.method):
            return refused(refusal(RefusalCode.NOT_FOUND, "not found; the page is at /ui/"))
        try:
            return await pages.respond(request, partial(self._identify, request), _body)
        finally:
            pages.keep(self._devices.table(), time.time())  # the request may have revoked a device with a stream

    async def _ready_pages(self) -> WorkbenchPages:
        """Return the pages, whose files are read at the first request: most companions never get one."""
        async with self._reading:
            if self._pages is None:
                bundle = await asyncio.to_thread(self._read)
                self._pages = WorkbenchPages(
                    bundle,
                    self._devices,
                    "Isthmus",
                    clock=self._clock,
                    codes=self._codes,
                    reviews=self._reviews,
                    has_tasks=False,
                )
        return self._pages

    async def _identify(self, request: HttpRequest) -> Principal | Refusal:
        return self._gate.identify(request.headers.get("authorization"), self._devices.table(), time.time())


async def _body(request: HttpRequest, limit: int) -> bytes | Refusal:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    return refusal(
                        RefusalCode.TOO_LARGE, f"the request is larger than {limit} bytes", {"Connection": "close"}
                    )
    except TimeoutError:
        return refusal(
            RefusalCode.TOO_SLOW, f"the request did not arrive within {BODY_SECONDS:g} s", {"Connection": "close"}
        )
    return bytes(body)
