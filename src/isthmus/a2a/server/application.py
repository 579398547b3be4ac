"""The A2A server as an ASGI application, for any AgentClient.

It refuses requests by their headers, reads bodies up to a limit, and serves the public card; everything else is in
:mod:`isthmus.a2a.server.endpoint`. A client that leaves never stops a task. Sockets and signals are in
:mod:`isthmus.a2a.server.listen`.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import field
from functools import partial
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.vocabulary import CARD_PATHS
from isthmus.a2a.server.card import PORT_KEY, card_of_request, card_response
from isthmus.a2a.server.framing import json_response
from isthmus.a2a.server.http.bodies import RequestBodies, free_room
from isthmus.a2a.server.http.bytes_in_flight import BytesInFlight
from isthmus.a2a.server.http.cross_origin import CrossOrigin, Sharing, sending_with
from isthmus.a2a.server.http.http_request import HttpRequest
from isthmus.a2a.server.http.paths import below_mount, served_path
from isthmus.a2a.server.logs.access_log import RequestNote, begin_note, note_of
from isthmus.a2a.server.owner_here import is_owner_here, names_command
from isthmus.a2a.server.principals import ForUser, Principals, PushFor, ServedPrincipal
from isthmus.a2a.server.probes import Probes
from isthmus.a2a.server.rest import raw_path, refusal
from isthmus.a2a.server.rest_bindings import allowed_methods, binding_of
from isthmus.a2a.server.users.auth import (
    LOCAL_USER,
    NO_USERS,
    OWNER_HERE,
    Principal,
    Refusal,
    RequestGate,
    RequestHead,
    UserAccess,
)
from isthmus.a2a.server.users.quota import CountUse
from isthmus.a2a.server.users.users import UserTable
from isthmus.a2a.wires import Wires
from isthmus.client import AgentClient
from isthmus.encoding.json_text import encode
from isthmus.listeners.connection_slot import token_shown
from isthmus.listeners.gate import bearer_token
from isthmus.record import record
from isthmus.runtime.telemetry import NO_TELEMETRY, ServedRequest, Telemetry

_SHARED_KEY = "isthmus.shared"
"""Key in the ASGI scope of a request of the headers that tell browsers who may read the response."""
Audit: TypeAlias = Callable[[RequestNote], None]
"""Function that takes what is known of a request once it has had its effect; must not fail."""
Identify: TypeAlias = Callable[[], Awaitable[Principal | Refusal]]
"""Function that returns the sender of a request."""
BodyOf: TypeAlias = Callable[[HttpRequest, int], Awaitable[bytes | Refusal]]
"""Function that reads the body of a request up to a number of bytes."""


class Pages(Protocol):
    """Pages for browsers that the server carries beside A2A."""

    def serves(self, path: str, method: str) -> bool:
        """Return whether requests for a path belong to them."""
        ...

    async def respond(self, request: HttpRequest, identify: Identify, body_of: BodyOf) -> Response:
        """Answer a request, whose Host and Origin are this server's."""
        ...

    def close_streams(self) -> None:
        """End every stream properly because the server stops."""
        ...

    def keep(self, users: UserTable, now: float) -> None:
        """End the streams of tokens that are no longer valid."""
        ...


@record
class Observers:
    """The observers of a server.

    ``audit`` writes a request to the audit log. ``probes`` are the pages for programs that watch the server, and
    ``telemetry`` takes each request.
    """

    audit: Audit | None = None
    probes: Probes = field(default_factory=Probes)
    telemetry: Telemetry = NO_TELEMETRY


def application(
    agent: AgentClient,
    options: ServerOptions,
    *,
    for_user: ForUser | None = None,
    push: PushFor | None = None,
    wires: Wires | None = None,
    owner_here: AgentClient | None = None,
    count_use: CountUse | None = None,
    access: UserAccess = NO_USERS,
    pages: Pages | None = None,
    observers: Observers | None = None,
) -> "Application":
    """Return the ASGI application that serves an agent; it does not close the agent.

    Args:
        agent: The agent as the server's owner sees it.
        options: Options of the server.
        for_user: Returns the agent as a user of the table sees it.
        push: Returns the push service for an agent; without it there are no push notifications.
        wires: The versions and dialects; by default all.
        owner_here: The agent as programs of the owner on the server's machine see it; by default ``agent``.
        count_use: Counts what models use for users; without it that is not limited.
        access: The users whom the server lets in.
        pages: Pages that are served beside A2A.
        observers: Who learns of requests.
    """
    principals = Principals(
        agent, options, for_user=for_user, push=push, wires=wires, owner_here=owner_here, count_use=count_use
    )
    return Application(principals, options, access, pages, observers or Observers())


class Application:
    """The ASGI application; create one with :func:`application`."""

    def __init__(
        self,
        principals: Principals,
        options: ServerOptions,
        access: UserAccess,
        pages: Pages | None,
        observers: Observers,
    ) -> None:
        self._principals = principals
        self._access = access
        self._probes = observers.probes
        self._telemetry = observers.telemetry
        self._audit = observers.audit
        self._pages = pages
        self._options = options
        self._started = time.time()
        public = urlsplit(options.public_url) if options.public_url is not None else None
        names = [*options.hosts, *([public.hostname] if public is not None and public.hostname else [])]
        origin = f"{public.scheme}://{public.netloc}".lower() if public is not None else None
        self._gate = RequestGate(options.token, frozenset(name.lower() for name in names), origin)
        self._bodies = RequestBodies(options)
        self._cross_origin = CrossOrigin.of(options.allowed_origins)
        self._served_path = served_path(options.public_url)
        self.port: int | None = None
        """Port that the server listens on, for the card; None: the card has the port of the request."""

    @property
    def open_streams(self) -> int:
        """Number of open answers that wait for a task."""
        return self._principals.open_streams

    @property
    def in_flight(self) -> BytesInFlight:
        """Budget of the bytes of the large requests that are being read and decoded."""
        return self._bodies.in_flight

    @property
    def served_principals(self) -> int:
        """Number of principals that are kept in memory."""
        return len(self._principals)

    def close_streams(self) -> None:
        """End every stream properly because the server stops; the tasks continue."""
        self._principals.close()
        if self._pages is not None:
            self._pages.close_streams()

    def close_invalid_streams(self) -> None:
        """End the streams of users whose token is no longer valid; to be called about once a second."""
        if self._access.users is not None or self._access.identify_issued is not None:
            users, now = self._access.table(), time.time()
            self._principals.keep(users, now)
            if self._pages is not None:
                self._pages.keep(users, now)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the ASGI server."""
        if scope["type"] == "http":
            scope = {**below_mount(scope, self._served_path), PORT_KEY: self.port}
            await self._serve(HttpRequest(scope, receive), scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, request: HttpRequest, scope: Scope, receive: Receive, send: Send) -> None:
        note = begin_note(scope, self._audit)
        found: ServedPrincipal | Response | None = None
        try:
            found = await self._enter(request)
        except ClientDisconnect:
            note.status = 499
        finally:
            free_room(scope)  # that of a body which the pages have read; no other has been read yet
        send = sending_with(send, scope.get(_SHARED_KEY, {}))
        is_let_in = isinstance(found, ServedPrincipal)
        served = ServedRequest(request.method, request.headers, is_let_in)
        with self._telemetry.measure(served):
            try:
                if isinstance(found, ServedPrincipal):
                    await self._answer(found, request, scope, receive, send)
                elif found is not None:
                    note.status = found.status_code
                    if found.status_code in (200, 204, 304) or self._probes.serves(scope["path"]):
                        note.level = logging.DEBUG  # the card and the probes, which machines request all the time
                    note.record()
                    await found(scope, receive, send)
            except ClientDisconnect:
                note.status = 499
            finally:
                served.method, served.task_id = note.operation, note.task_id
                served.status, served.error = note.status, note.error
                note.record()
                note.write()

    async def _answer(
        self, found: ServedPrincipal, request: HttpRequest, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request of a principal."""
        note = note_of(scope)
        found.requests.count += 1
        try:
            try:
                response = await self._response(found, request)
            finally:
                free_room(scope)
            note.status = response.status_code
            note.record()
            await response(scope, receive, send)
        finally:
            found.requests.count -= 1

    async def _response(self, found: ServedPrincipal, request: HttpRequest) -> Response:
        body = await self._bodies.read(request, found.body_limit, found.principal.name)
        if isinstance(body, Refusal):
            return self._refused(body, request)
        if await self._is_owner_here(found.principal, request, body):
            found = self._principals.of(OWNER_HERE)
        answering = found.endpoint.answer(request, body, found.caller)
        del body  # it may be large, and the answer may take long
        return await answering

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.close_streams()
        await send({"type": "lifespan.shutdown.complete"})

    async def _enter(self, request: HttpRequest) -> ServedPrincipal | Response:
        """Return the principal of a request whose body may be read; otherwise the response, which needs no body."""
        headers = request.headers
        path: str = request.scope["path"]
        public = path in CARD_PATHS or self._probes.serves(path)
        pages = self._pages if self._pages is not None and self._pages.serves(path, request.method) else None
        admitted = self._admit(request, self._sharing(path, pages))
        if isinstance(admitted, Response):
            return admitted
        refused = admitted
        if refused is None and pages is not None:
            return await pages.respond(request, partial(self._identify_for_pages, request), self._bodies.read)
        principal: Principal | Refusal | None = None
        needs_owner = public and self._probes.needs_owner(path, headers.get("authorization"))
        if refused is None and (needs_owner or not public):
            principal = await self._identify(request)
            refused = principal if isinstance(principal, Refusal) else None
            if needs_owner and isinstance(principal, Principal) and principal.name:
                refused = Refusal(403, "this page is for the owner of the server", {})
        if refused is None:
            refused = self._refuse_route(request, public) or _refuse_encoding(headers.get("content-encoding"))
        if refused is not None:
            return self._refused(refused, request)
        if self._probes.serves(path):
            return await self._probes.respond(path, is_closing=self._principals.closing)
        if isinstance(principal, Principal):
            token_shown(request.scope)
        if not isinstance(principal, Principal):
            card = card_of_request(request, self._options, has_push=self._principals.has_push)
            return card_response(card, headers, self._started)
        served = self._principals.of(principal)
        refused = served.refuse_rate(time.monotonic()) or served.refuse_more()
        return served if refused is None else self._refused(refused, request)

    def _sharing(self, path: str, pages: Pages | None) -> Sharing:
        if path in CARD_PATHS:
            return Sharing.EVERY_PAGE
        return Sharing.OWN_PAGE if pages is not None or self._probes.serves(path) else Sharing.NAMED_PAGES

    def _admit(self, request: HttpRequest, sharing: Sharing) -> Refusal | Response | None:
        """Refuse a request by its Host and Origin, answer a preflight request, or return None.

        What browsers are told of the response is noted in the scope.
        """
        headers, rule = request.headers, self._cross_origin
        origin = headers.get("origin")
        is_permitted = origin is not None and rule.permits(sharing, request.method, headers)
        scheme = request.scope.get("scheme", "http")
        refused = self._gate.refuse_origin(headers.get("host"), None if is_permitted else origin, scheme)
        if refused is not None:
            return refused
        request.scope[_SHARED_KEY] = rule.headers(sharing, origin if is_permitted else None)
        return rule.preflight(sharing, request.method, headers) if is_permitted else None

    async def _identify(self, request: HttpRequest) -> Principal | Refusal:
        found, note = await self._authenticated(request), note_of(request.scope)
        if isinstance(found, Refusal):
            note.reason = found.message
        else:
            note.user, note.auth, note.token_id = found.name, found.authentication, found.token_id
        return found

    async def _authenticated(self, request: HttpRequest) -> Principal | Refusal:
        access = self._access
        if access.authenticate is None:
            authorization = request.headers.get("authorization")
            found = self._gate.identify(authorization, access.table(), time.time())
            if access.identify_issued is None or authorization is None or isinstance(found, Principal):
                return found
            token = bearer_token(authorization)
            issued = await access.identify_issued(token) if token is not None else None
            return found if issued is None else issued
        head = RequestHead(request.method, request.scope["path"], request.headers, request.scope)
        name = await access.authenticate(head)
        return Principal(name) if name is not None else Refusal(401, "the request is not authenticated", {})

    async def _identify_for_pages(self, request: HttpRequest) -> Principal | Refusal:
        found = await self._identify(request)
        if isinstance(found, Principal) and found.expires is not None:
            # A browser is paired for months, which its user's account elsewhere may not last.
            return Refusal(403, "the workbench needs a token of this server; ask its owner for one", {})
        if isinstance(found, Principal):
            return self._principals.of(found).refuse_rate(time.monotonic()) or found
        return found

    async def _is_owner_here(self, principal: Principal, request: HttpRequest, body: bytes) -> bool:
        """Return whether the owner of the token is known to be the user of a program on this machine."""
        if not self._principals.knows_owner_here or self._access.authenticate is not None or principal != LOCAL_USER:
            return False
        return names_command(body) and await is_owner_here(request)

    def _refuse_route(self, request: HttpRequest, public: bool) -> Refusal | None:
        path: str = request.scope["path"]
        if public:
            allowed: tuple[str, ...] = ("GET", "HEAD")
        else:
            allowed = ("POST",) if path == "/" else (*self._methods_of(path), *allowed_methods(raw_path(request.scope)))
        if not allowed:
            return Refusal(
                404, "not found; JSON-RPC is served at /, and A2A over HTTP at /message:send and the like", {}
            )
        if request.method not in allowed:
            return Refusal(405, f"expected {' or '.join(allowed)}", {"Allow": ", ".join(allowed)})
        return None

    def _refused(self, refused: Refusal, request: HttpRequest) -> Response:
        """Return a refusal as the A2A version of its path writes it, or for other paths as ``{"error": ...}``."""
        note_of(request.scope).reason = refused.message
        path = raw_path(request.scope)
        if request.method not in self._methods_of(request.scope["path"]) and allowed_methods(path):
            return refusal(binding_of(path), refused.status, refused.message, refused.headers)
        return json_response(encode({"error": refused.message}), refused.status, refused.headers)

    def _methods_of(self, path: str) -> tuple[str, ...]:
        """Return the HTTP methods of a dialect's path; none for another path."""
        dialect = self._principals.wires.dialect_with(path)
        return () if dialect is None else dialect.methods_of(path)


def _refuse_encoding(encoding: str | None) -> Refusal | None:
    if encoding is None or encoding.strip().lower() in ("", "identity"):
        return None
    message = f"expected a body without Content-Encoding, received {encoding[:80]!r}"
    return Refusal(415, message, {"Accept-Encoding": "identity"})
